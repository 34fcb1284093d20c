"""Claimers race for what waits, and some are killed: every row is claimed once, and none is lost.

A killed claimer is replaced by one that reads its journal. Every other kill waits for the moment that matters: the
claim is committed and its rows are not noted, so that they are found again by the claim's id or never.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

from casework.children.server import launcher
from casework.drills.process_claimer import CLAIMED, DSN, TENANT, WAITING, entries, open_claim
from casework.drills.process_ground import ProcessGround
from casework.drills.promises import BrokenOffError, Report

NAME = "claimers"
TITLE = "Claimers race for rows, and some are killed"
LOOK_EVERY_S = 0.05
LARGEST, FEWEST_CLAIMS = 100, 20
"""Rows of a claim at most, and claims of each claimer at least, so that there is time for the kills."""
STILL_S = 120.0
"""Seconds without a claim after which it is broken off."""
LEFT = """
select count(*) from process_ops.transactions
where tenant = %(tenant)s and status = %(waiting)s and claim_id is null
"""
BORNE = "select count(*) from process_ops.transactions where tenant = %(tenant)s and claim_id = %(claim)s"
ONCE = """
select count(*) filter (where claims = 1 and status = %(claimed)s), count(*) from (
    select t.status, (select count(*) from process_ops.transaction_stages s
                      where s.tenant = t.tenant and s.transaction_uuid = t.uuid and s.after = %(claimed)s) as claims
    from process_ops.transactions t where t.tenant = %(tenant)s) counted
"""
TAKEN = "select coalesce(sum(taken), 0) from process_ops.transaction_claims where tenant = %(tenant)s"


@dataclass
class Claimer:
    """A claimer, and those that took its place: they share journal and ids of claims."""

    journal: Path
    go: Path
    size: int
    env: dict[str, str]
    seed: UUID = field(default_factory=uuid4)
    child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, or its successor, and return at once."""
        given = ["--journal", str(self.journal), "--seed", str(self.seed), "--size", str(self.size)]
        given += ["--go", str(self.go)]
        words = [*launcher(death_signal=signal.SIGKILL), sys.executable, "-m", "casework.drills.process_claimer"]
        self.child = subprocess.Popen([*words, *given], env=self.env)  # noqa: S603  # returns at once

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return None if self.child is None else self.child.poll()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self.child is not None and self.code is None:
            self.child.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        if self.child is not None:
            self.child.kill()
            self.child.wait()


async def play(ground: ProcessGround, report: Report, claimers: int, rows: int, kills: int) -> None:
    """Let so many claimers race for `rows`, and kill one `kills` times, evenly over the way.

    Raises:
        BrokenOffError: nothing is claimed any more.
    """
    uuids = await ground.put_in(NAME, rows, WAITING, TENANT)
    folder = ground.folder / NAME
    folder.mkdir()
    env = {**os.environ, DSN: ground.stack.settings.database.runtime_dsn()}
    size = max(1, min(LARGEST, rows // (claimers * FEWEST_CLAIMS)))
    crew = [Claimer(folder / f"{number}.jsonl", folder / "go", size, env) for number in range(claimers)]
    try:
        for each in crew:
            each.start()
        report.tell(f"{rows} rows wait for {claimers} claimers.")
        race = _Race(ground, report, crew, rows)
        await race.run(kills)
        await _judge(ground, report, crew, uuids)
        race.tell(kills)
    finally:
        for each in crew:
            each.kill()


class _Race:
    """The race as it goes on: what is left, and whom it has cost."""

    def __init__(self, ground: ProcessGround, report: Report, crew: Sequence[Claimer], rows: int) -> None:
        self._ground, self._report, self._crew, self._rows = ground, report, crew, rows
        self.killed = 0
        self.in_doubt: set[UUID] = set()
        """Claims that were committed and not noted, when their claimers were killed."""

    async def run(self, kills: int) -> None:
        """From the start to the last claimer's end."""
        self._crew[0].go.touch()
        began, left, moved_at = time.monotonic(), self._rows, time.monotonic()
        while any(each.code is None for each in self._crew):
            [(now,)] = await self._ground.owner(LEFT, tenant=TENANT, waiting=WAITING)
            if now != left:
                left, moved_at = now, time.monotonic()
            if time.monotonic() - moved_at > STILL_S:
                raise BrokenOffError(f"Nothing was claimed for {STILL_S:g} s, and {left} rows wait.")
            if self.killed < kills and 0 < left <= self._rows * (1 - (self.killed + 1) / (kills + 2)):
                await self._kill_one()
            await asyncio.sleep(LOOK_EVERY_S)
        seconds = time.monotonic() - began
        self._report.counts.update(rows=self._rows, claims_per_second=round(self._rows / seconds))

    async def _kill_one(self) -> None:
        """The next one that is at work; every other time one that is between its claim and the note of it."""
        start = self.killed
        for turn in range(start, start + len(self._crew)):
            claimer = self._crew[turn % len(self._crew)]
            if claimer.code is not None:
                continue
            claimer.send(signal.SIGSTOP)
            claim = open_claim(claimer.journal)
            borne = claim and (await self._ground.owner(BORNE, tenant=TENANT, claim=claim))[0][0]
            if borne or start % 2:
                self.in_doubt |= {claim} if claim and borne else set()
                claimer.kill()
                claimer.start()
                self.killed += 1
                self._report.tell(f"Killed a claimer: its open claim had {borne or 'no'} rows.")
                return
            claimer.send(signal.SIGCONT)

    def tell(self, kills: int) -> None:
        """What the kills came to."""
        report = self._report
        again = {UUID(str(each["claim"])) for one in self._crew for each in entries(one.journal) if each.get("again")}
        report.counts.update(claimers=len(self._crew), kills=self.killed, found_again=len(self.in_doubt & again))
        report.promise(f"{kills} claimers were killed", self.killed == kills, self.killed)
        found = bool(self.in_doubt or not kills) and again.issuperset(self.in_doubt)
        text = "What a killed claimer had claimed and not noted was found again by its claim's id"
        report.promise(text, found, f"{len(self.in_doubt)} claims")
        codes = [each.code for each in self._crew]
        report.promise("Every claimer ended when nothing waited any more", not any(codes), codes)


async def _judge(ground: ProcessGround, report: Report, crew: Sequence[Claimer], uuids: Sequence[UUID]) -> None:
    [(once, there)] = await ground.owner(ONCE, tenant=TENANT, claimed=CLAIMED)
    report.promise("Every row was claimed exactly once", once == there == len(uuids), f"{once} of {there}")
    noted: Counter[str] = Counter()
    for each in crew:
        for entry in entries(each.journal):
            noted.update(map(str, entry.get("rows", [])))
    whole = set(noted) == set(map(str, uuids)) and noted.total() == len(uuids)
    report.promise("Every row was given to exactly one claimer", whole, noted.total())
    [(taken,)] = await ground.owner(TAKEN, tenant=TENANT)
    report.promise("The claims tell of as many rows as there are", taken == len(uuids), taken)
