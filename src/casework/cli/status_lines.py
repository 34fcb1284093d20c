"""From facts about the installation to lines in plain words: fine, waiting as intended, or broken, with the remedy.

Here: what is told of each part. Not here: asking the servers (`status_look`), printing (`status`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from casework.cli.output import safe, when
from casework.values import Plain, instant, plain, shortened

if TYPE_CHECKING:
    from casework.durable.builds import Builds
    from casework.durable.contracts import SweepReport
    from casework.durable.in_hand import Workers
    from casework.durable.last_sweep import LastSweep
    from casework.store.health import Condition, HeldRun, Work
    from casework.store.waits import WaitTotal

FINE, WAITS, RETRIES, LOOK, BROKEN = "fine", "waits", "retries", "look", "broken"
"""As it should be; as intended, for a person; tried again by itself; worth a look; an operator must act."""

LOCK_PATIENCE_S = 3.0
"""A wait for a lock that is longer than this holds up a case."""
FEW_LEFT = 0.1
"""Share of free connections under which more are needed soon."""
NAMED = 5
"""Most runs that one line names."""


@dataclass(frozen=True)
class Line:
    """One part of the installation and how it does."""

    part: str
    state: str
    text: str
    remedy: str | None = None
    facts: Mapping[str, Plain] = field(default_factory=dict)

    def plain(self) -> Plain:
        """For programs."""
        return plain(asdict(self), self.part)

    def shown(self) -> str:
        """For people: a line, and the remedy below it."""
        first = f"{self.state:<8}{self.part:<10}{_one_line(self.text)}"
        return first if self.remedy is None else f"{first}\n{'':18}-> {_one_line(self.remedy)}"


def _one_line(text: str) -> str:
    return safe(" ".join(shortened(text, 600).split()))


def _bare(reason: str) -> str:
    """A reason that goes on in a sentence of ours, which has the full stop."""
    return reason.rstrip().rstrip(".")


@dataclass(frozen=True)
class Stuck:
    """A run that does not move: which step of it, why, and since when."""

    run_id: str
    step: str
    reason: str
    since: datetime | None


def database(where: str, found: Condition) -> Line:
    """A database that answers."""
    server = found.server
    facts = {"connections": server.connections, "most_connections": server.most_connections}
    used = f"{server.connections} of {server.most_connections} connections"
    if (obstacle := _read_only(found) or _not_as_migrated(found) or _lock(found)) is not None:
        return Line("database", BROKEN, f"{where} {obstacle[0]}", obstacle[1], facts)
    if server.connections >= server.most_connections * (1 - FEW_LEFT):
        remedy = "Raise max_connections, or lower CASEWORK_DATABASE_POOL_MAX."
        return Line("database", LOOK, f"{where} answers and takes writes; {used} are taken.", remedy, facts)
    return Line("database", FINE, f"{where} answers and takes writes; {used} are taken.", None, facts)


def _read_only(found: Condition) -> tuple[str, str] | None:
    if found.server.in_recovery:
        return "is a standby and takes no writes.", "Name the primary in CASEWORK_DATABASE_URL."
    if found.server.read_only:
        remedy = "Find what set default_transaction_read_only (database, role, server), and reset it."
        return "answers but refuses writes: its transactions are read-only.", remedy
    return None


def _not_as_migrated(found: Condition) -> tuple[str, str] | None:
    if found.missing_migrations:
        return f"lacks migrations of this release: {', '.join(found.missing_migrations)}.", "casework migrate"
    if found.missing_rights:
        return f"gives the runtime's role no {', '.join(found.missing_rights)}.", "Grant it, as the owner."
    return None


def _lock(found: Condition) -> tuple[str, str] | None:
    lock = found.blocked
    if lock is None or lock.waits_s <= LOCK_PATIENCE_S:
        return None
    since = "" if lock.by_since_s is None else f" for {lock.by_since_s:.0f} s"
    holder = f"process {lock.by_pid} holds ({lock.by_name}, {lock.by_state}{since})"
    text = f"answers, but a session has waited {lock.waits_s:.0f} s for a lock that {holder}."
    return text, f"Let it end, or end it: select pg_terminate_backend({lock.by_pid})"


def away(part: str, text: str) -> Line:
    """A server that does not answer, in the words of the error, which say what to do."""
    return Line(part, BROKEN, text)


def temporal(where: str, foreign: str | None, remedy: str) -> Line:
    """An engine that answers, and whether it is the one that the database's runs are in."""
    if foreign is not None:
        return Line("temporal", BROKEN, f"{where}, answers, but is not the engine of this database. {foreign}", remedy)
    return Line("temporal", FINE, f"{where}, answers.")


def workers(queue: str, found: Workers | None, now: datetime) -> Line:
    """Who takes the work."""
    if found is None:
        return Line("workers", BROKEN, "Temporal does not say who works.", "Look at Temporal first.")
    alive = found.alive(now)
    facts = {"alive": alive, "last_seen": instant(found.last) if found.last else None}
    if alive:
        count = "1 worker asks" if len(alive) == 1 else f"{len(alive)} workers ask"
        last = f", the last time {when(instant(found.last))}" if found.last else ""
        return Line("workers", FINE, f"{count} for work on queue {queue}{last}.", None, facts)
    last = f"since {when(instant(found.last))}" if found.last else "and nobody is known to have"
    return Line("workers", BROKEN, f"Nobody asks for work on queue {queue}, {last}.", "casework worker", facts)


def builds(found: Builds) -> Line:
    """Builds of workers side by side, where there are any."""
    told = ", ".join(f"{each.name} {each.state} ({each.workers} at work)" for each in found.builds[:NAMED])
    facts = {"current": found.current, "builds": {each.name: each.state for each in found.builds}}
    if found.idle:
        who = "no build is" if found.current is None else f"no worker is of build {found.current}, which is"
        remedy = "casework builds make-current BUILD, or start a worker of the build that is current."
        return Line("builds", BROKEN, f"Nobody gets new runs: {who} current. Builds: {told}.", remedy, facts)
    if deserted := found.deserted:
        named = "; ".join(f"{each.staying} with {each.name}" for each in deserted[:NAMED])
        remedy = f"Start a worker with CASEWORK_WORKER_BUILD={deserted[0].name} until they have ended."
        return Line("builds", BROKEN, f"Runs stay with a build that no worker is of: {named}.", remedy, facts)
    return Line("builds", FINE, f"{told}.", None, facts)


SWEEP_LATE = timedelta(minutes=3)
"""It comes twice a minute."""


def sweep(found: LastSweep, now: datetime) -> Line:
    """Whether what falls between the servers is found."""
    if not found.scheduled:
        return Line(
            "sweep", BROKEN, "It is not scheduled: lost runs are not found.", "Start a worker; it schedules it."
        )
    facts = {"at": instant(found.at) if found.at else None, "report": plain(found.report, "report")}
    if found.paused:
        return Line(
            "sweep", BROKEN, "It is paused: lost runs are not found.", "Unpause its schedule in Temporal.", facts
        )
    if found.failure:
        text = f"The last one, {when(facts['at'])}, failed: {_bare(found.failure)}."
        return Line("sweep", LOOK, text, "The next one tries again; look at the worker's log if it fails too.", facts)
    if found.report is None:
        return Line("sweep", FINE, "It is scheduled and has not ended yet for the first time.", None, facts)
    return _swept(found, found.report, facts, now)


def _swept(found: LastSweep, report: SweepReport, facts: dict[str, Plain], now: datetime) -> Line:
    if report.refused is not None:
        text = f"The last one, {when(facts['at'])}, did nothing: it is not in the engine of this database's runs."
        return Line("sweep", BROKEN, f"{text} {report.refused}", "casework engine show", facts)
    if found.at is not None and now - found.at > SWEEP_LATE:
        late = f"The last one was {when(facts['at'])}; none has ended since."
        return Line("sweep", LOOK, late, "Is a worker at work? Look at the line workers, and at its log.", facts)
    text = f"Last {when(facts['at'])}: {report.seen} open runs seen, {report.started} started, {report.failed} closed."
    return Line("sweep", FINE, text, None, facts)


def runs(found: Work) -> Line:
    """What is open."""
    counts = {"PENDING": found.pending, "RUNNING": found.running, "AWAITING_REVIEW": found.awaiting_review}
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    return Line("runs", FINE, f"Open: {told}.", None, counts)


def reviews(found: Work) -> Line:
    """Intended waits."""
    if not found.reviews:
        return Line("reviews", FINE, "Nothing waits for a person.")
    since = instant(found.oldest_review) if found.oldest_review else None
    many = "1 waits for a person" if found.reviews == 1 else f"{found.reviews} wait for a person"
    text = f"{many}, as intended; the oldest since {when(since)}."
    return Line("reviews", WAITS, text, "casework review list", {"waiting": found.reviews, "oldest": since})


def waits(found: WaitTotal) -> Line:
    """Intended waits of WAIT nodes."""
    if not found.runs:
        return Line("waits", FINE, "No run waits for a time or a signal.")
    since = instant(found.oldest) if found.oldest else None
    many = "1 run waits" if found.runs == 1 else f"{found.runs} runs wait"
    text = f"{many} for a time or a signal, as intended; the oldest since {when(since)}."
    return Line("waits", WAITS, text, None, {"waiting": found.runs, "oldest": since})


def retries(found: Work) -> Line:
    """Steps that are tried again."""
    if not found.retrying:
        return Line("retries", FINE, "No step is tried again.")
    since = instant(found.oldest_retry) if found.oldest_retry else None
    many = "1 step is" if found.retrying == 1 else f"{found.retrying} steps are"
    text = f"{many} tried again by itself; the oldest begun {when(since)}."
    return Line("retries", RETRIES, text, "casework steps list --retrying", {"steps": found.retrying, "oldest": since})


def failures(found: Work) -> Line:
    """Steps that failed for good."""
    if not found.failed:
        return Line("failures", FINE, "No step failed for good within a day.")
    many = "1 step" if found.failed == 1 else f"{found.failed} steps"
    return Line("failures", LOOK, f"{many} failed for good within a day.", "casework steps list --failed",
                {"steps": found.failed})  # fmt: skip


def ended(found: Work) -> Line:
    """Runs that ended FAILED: nothing holds them any more, and nothing will make them go on."""
    if not found.runs_failed:
        return Line("ended", FINE, "No run ended FAILED within a day.")
    many = "1 run" if found.runs_failed == 1 else f"{found.runs_failed} runs"
    remedy = "casework runs list --status failed"
    return Line("ended", LOOK, f"{many} ended FAILED within a day.", remedy, {"runs": found.runs_failed})


def incidents(found: Sequence[HeldRun], count: int) -> Line:
    """Runs that cannot go on until something outside is mended."""
    if not count:
        return Line("incidents", FINE, "No incident holds a run.")
    many = "1 run is" if count == 1 else f"{count} runs are"
    named = "; ".join(f"{run.run_id}: {_bare(run.reason)}" for run in found[:NAMED])
    remedy = "Mend what the reason names; the runs go on by themselves."
    return Line("incidents", BROKEN, f"{many} held by an incident: {named}.", remedy, {"runs": count})


def faults(found: Sequence[Stuck], asked: int) -> Line:
    """Runs that wait for the database at this moment."""
    facts = {"asked": asked, "runs": [{"run_id": run.run_id, "step": run.step, "reason": run.reason} for run in found]}
    if not found:
        return Line("faults", FINE, "No run waits for the database.", None, facts)
    many = "1 run waits" if len(found) == 1 else f"{len(found)} runs wait"
    named = "; ".join(
        f"run {run.run_id} at {run.step or 'its next step'}: {_bare(run.reason)}" for run in found[:NAMED]
    )
    remedy = "Mend what the database says; the runs go on by themselves and have used no attempt."
    return Line("faults", BROKEN, f"{many} for the database: {named}.", remedy, facts)


def queued(found: Sequence[Stuck], *, served: bool) -> Line:
    """Runs whose next step no worker takes."""
    facts = {"runs": [run.run_id for run in found]}
    if not found:
        return Line("queue", FINE, "No run waits for a worker.", None, facts)
    oldest = min((run.since for run in found if run.since), default=None)
    since = f" since {when(instant(oldest))}" if oldest else ""
    many = "1 run waits" if len(found) == 1 else f"{len(found)} runs wait"
    if served:
        remedy = "If it stays so: start more workers, or look whether those there hang."
        return Line("queue", LOOK, f"{many} for a free worker{since}.", remedy, facts)
    return Line("queue", BROKEN, f"{many} for a worker{since}, and none is up.", "casework worker", facts)
