"""The sample of repeat safety with a careless tool or destination of each kind: a drill must find every one.

Run as a program it is the careless office; as a module it is the application.

- idempotent: the office takes each PUT for a change of its own.
- keyed: the office does not honour keys.
- transactional: the tool commits its row through a connection of its own.
- verify: the question is never answered with yes.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import psycopg

from casework.agents import Happened, Repeat, ToolContext, tool
from casework.app import App
from casework.examples.repeat_safety import tools
from casework.examples.repeat_safety.application import MANIFEST
from casework.examples.repeat_safety.office import Office, main
from casework.examples.repeat_safety.rehearsal import REHEARSAL
from casework.examples.repeat_safety.script import clerk
from casework.examples.repeat_safety.tools import Line


class CarelessOffice(Office):
    """Everything that is asked for is done once more."""

    def _changes(self, customer_id: str, address: str) -> bool:
        return True

    def _is_new(self, key: str) -> bool:
        return True


@tool(repeat=Repeat.TRANSACTIONAL, timeout=10)
async def note_change(ctx: ToolContext, entry: Line) -> str:
    """Note the change in the journal of customers."""
    row = (ctx.tenant, ctx.run_id, ctx.key, "C-1", entry)
    async with await psycopg.AsyncConnection.connect(os.environ["CASEWORK_DATABASE_URL"]) as own:
        await own.execute(
            "insert into change_of_address.journal (tenant, run_id, key, customer_id, entry)"
            " values (%s, %s, %s, %s, %s)",
            row,
        )
    return f"noted: {entry}"


async def never(ctx: ToolContext, text: str) -> Happened | None:
    """Whatever happened, it says that it did not."""
    return None


COMMAND = (sys.executable, "-m", "tests.acceptance.careless")

app = App(
    tools=(tools.set_address, tools.charge_fee, note_change, replace(tools.send_letter, verify=never)),
    manifests=(MANIFEST,),
    scripts={"clerk": clerk},
    rehearsal=replace(REHEARSAL, destination=replace(REHEARSAL.destination, command=COMMAND)),
)

if __name__ == "__main__":
    main(CarelessOffice)
