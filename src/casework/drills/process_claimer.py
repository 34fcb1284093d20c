"""A claimer as a process of its own: it claims what waits, a tray at a time, and writes down what each claim took.

The journal is a line of JSON for a claim before it is made, and one with its rows behind it. A claimer that is started
on the journal of one that was killed makes the last claim again, if there is none of its rows.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from casework.store.database import Database
from casework.store.processes import claims
from casework.store.roles import RUNTIME
from casework.values import dumps, loads

DSN = "CASEWORK_DRILL_DSN"
"""The variable with the URL of the database."""
TENANT = "claims"
WAITING, CLAIMED = "NEW", "CLAIMED"
PROCESS = "claims"
WORK_S = 0.02
"""Seconds between a claim and its note, in which a tray would be started."""
AGAIN_S = 0.05
"""Seconds before it looks again, where all that waits is in the hands of others."""
LEFT = b"select exists (select from process_ops.transactions where tenant = %s and status = %s and claim_id is null)"


def entries(journal: Path) -> Iterator[dict[str, Any]]:
    """What stands in a journal; a last line that a kill cut off is none."""
    for line in journal.read_text().splitlines() if journal.exists() else ():
        try:
            yield loads(line)
        except ValueError:
            continue


def open_claim(journal: Path) -> UUID | None:
    """The claim that was to be made, and whose rows nobody has noted."""
    last = None
    for each in entries(journal):
        last = None if "rows" in each else UUID(str(each["claim"]))
    return last


async def claim_all(dsn: str, journal: Path, seed: UUID, size: int) -> None:
    """Claim `size` at a time until nothing waits."""
    number = sum("rows" not in each for each in entries(journal))
    again = open_claim(journal)
    async with await Database.open(dsn, role=RUNTIME, max_size=1, name="casework-claimer") as db:
        while again is not None or await _left(db):
            claim_id, repeated = again or uuid5(seed, str(number)), again is not None
            if not repeated:
                number += 1
                note(journal, {"claim": str(claim_id)})
            rows = await _claim(db, claim_id, size)
            await asyncio.sleep(WORK_S)
            note(journal, {"claim": str(claim_id), "rows": rows, "again": repeated})
            again = None
            if not rows:
                await asyncio.sleep(AGAIN_S)


async def _claim(db: Database, claim_id: UUID, size: int) -> list[str]:
    async with db.transaction() as conn:
        found = await claims.claim(
            conn,
            TENANT,
            status=WAITING,
            into=CLAIMED,
            claim_id=claim_id,
            most=size,
            process=PROCESS,
            by="Claimer",
            at=datetime.now(UTC),
        )
    return [str(each.uuid) for each in found]


async def _left(db: Database) -> bool:
    async with db.transaction() as conn:
        row = await (await conn.execute(LEFT, [TENANT, WAITING])).fetchone()
    return row is not None and bool(row[0])


def note(journal: Path, entry: dict[str, object]) -> None:
    """Write a line; what is written outlives the process. A line that was cut off is ended first."""
    with journal.open("ab") as file:
        file.write(f"\n{dumps(entry)}\n".encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--seed", type=UUID, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--go", type=Path, required=True, help="file that lets all claimers begin")
    given = parser.parse_args()
    while not given.go.exists():
        time.sleep(AGAIN_S)
    asyncio.run(claim_all(os.environ[DSN], given.journal, given.seed, given.size))
