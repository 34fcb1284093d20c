"""The tasks of Submission: each decision gets a number of its day, a letter, and a line in the day's report.

The number is drawn in the Transaction's own database transaction, one after the other. Letters and reports are files:
`DAY/0001-REFERENCE.pdf` with its facts beside it as `.json`, and `DAY/report.pdf`, made of these facts.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from casework.examples.email_intake import letters
from casework.process import Change, PlainTask, TaskContext, Transaction, TransactionalTask, bot_task
from casework.process.injection import TaskConnection

_LOCK = "select pg_advisory_xact_lock(hashtextextended(%s, 0))"
_NEXT = """
select coalesce(max((data -> 'letter' ->> 'number')::integer), 0) + 1
from process_ops.transactions
where tenant = %s and data -> 'letter' ->> 'day' = %s
"""


class Numbers(Protocol):
    """Gives the letters of a day their numbers, from 1."""

    async def draw(self, tenant: str, day: str) -> int:
        """The next number; it is used up when the Transaction at hand is written."""
        ...


class NumbersInDatabase:
    """Numbers by what the Transactions of the day have. The lock holds until this one is committed."""

    def __init__(self, connection: TaskConnection) -> None:
        self._connection = connection

    async def draw(self, tenant: str, day: str) -> int:
        """The next number."""
        conn = self._connection.open
        await conn.execute(_LOCK, (f"loan letters {tenant} {day}",))
        row = await (await conn.execute(_NEXT, (tenant, day))).fetchone()
        return int(row[0])


@dataclass(frozen=True)
class LettersFolder:
    """The folder for letters and reports, which all workers see."""

    path: Path

    def write(self, entry: dict[str, str]) -> str:
        """Write a letter and its facts, whole or not at all; gives its place in the folder."""
        day = self.path / entry["day"]
        day.mkdir(parents=True, exist_ok=True)
        stem = f"{int(entry['number']):04}-{entry['reference']}"
        _put(day / f"{stem}.pdf", letters.letter(entry))
        _put(day / f"{stem}.json", json.dumps(entry, sort_keys=True).encode())
        return f"{entry['day']}/{stem}.pdf"

    def report(self, day: str) -> str:
        """Write the day's report anew. One at a time, so that the last one has every letter that is there."""
        folder = self.path / day
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            entries = [json.loads(file.read_bytes()) for file in sorted(folder.glob("*.json"))]
            _put(folder / "report.pdf", letters.report(day, entries))
        return f"{day}/report.pdf"


@bot_task("number-letter")
class NumberLetter(TransactionalTask):
    """Sets `letter`: its day (UTC) and its number of that day."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        """Draw the number."""
        day = ctx.now.date().isoformat()
        return Change(data={"letter": {"day": day, "number": await self.numbers.draw(transaction.tenant, day)}})


@bot_task("write-letter", repeat="idempotent")
class WriteLetter(PlainTask):
    """Writes the letter. The same Transaction gives the same file, so a repeated task leaves one."""

    def __init__(self, folder: LettersFolder) -> None:
        self.folder = folder

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:  # noqa: ARG002  # as the kind has it
        """Write it; `file` of `letter` says where."""
        letter: Any = transaction.data["letter"]
        file = await asyncio.to_thread(self.folder.write, entry_of(transaction))
        return Change(data={"letter": {**letter, "file": file}})


@bot_task("write-report", repeat="idempotent")
class WriteReport(PlainTask):
    """Writes the report of the letter's day anew, with this letter in it."""

    def __init__(self, folder: LettersFolder) -> None:
        self.folder = folder

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:  # noqa: ARG002  # as above
        """Write it."""
        letter: Any = transaction.data["letter"]
        await asyncio.to_thread(self.folder.report, letter["day"])
        return None


def entry_of(transaction: Transaction) -> dict[str, str]:
    """What letter and report say of a decided Transaction: texts by name."""
    data: Any = transaction.data
    told: dict[str, Any] = {**data["application"], **data["letter"], "outcome": data["decision"]["outcome"]}
    told |= {"reference": transaction.uuid, "repaired": data.get("repaired") or ""}
    names = ("reference", "day", "number", "applicant_id", "amount", "purpose", "outcome", "repaired")
    return {name: str(told[name]) for name in names}


def _put(target: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as file:
        file.write(content)
    os.replace(file.name, target)
