"""Which spans a run has above its attempts, told from what is seen of it outside: activities and what they carry.

Every activity carries the outbox: in it stand the events of visits that began and ended, with the engine's time, and
the decisions that arrived. A visit's span is made of its two events, or of what a segment says of it. What lies between
a visit and its activities (an exchange) has no event of its own: it lasts from its first activity's start to its last
one's end. Everything here follows from the history, so a replay arrives at the same spans; `emit` is for the caller to
leave out then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from casework import ids
from casework.telemetry import records
from casework.telemetry.identity import Place, name_at, parent_path, span_id_of
from casework.telemetry.records import SpanRecord

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENDS = {"agent.node_completed": None, "agent.node_failed": "VisitFailed", "agent.node_terminated": "terminated"}


def nanoseconds(at: datetime) -> int:
    """Since the epoch, to the microsecond."""
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000


@dataclass(frozen=True)
class RunFacts:
    """What every span of a run says, and where the run stands. `at` is any place in its trace."""

    run_id: UUID
    tenant: str
    workflow: str
    version: int
    at: Place

    def place(self, path: str) -> Place:
        """The place of the span at `path`."""
        return self.at.at(self.run_id, path)

    def attributes(self, path: str) -> dict[str, str | int | float | bool]:
        """The attributes of every span at `path`."""
        made: dict[str, str | int | float | bool] = {
            records.RUN_ID: str(self.run_id),
            records.TENANT: self.tenant,
            records.PATH: path,
            records.WORKFLOW: self.workflow,
            records.VERSION: self.version,
        }
        return {**made, records.STEP_ID: str(ids.step_id(self.run_id, path))} if path else made


@dataclass
class _Open:
    """A span that has begun."""

    start: int
    end: int
    busy: int = 0


@dataclass
class RunSpans:
    """The spans of one run; `emit` gets each once, when it is over."""

    facts: RunFacts
    emit: Callable[[SpanRecord], None]
    _visits: dict[str, _Open] = field(default_factory=dict)
    _between: dict[str, _Open] = field(default_factory=dict)
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _senders: dict[str, Place] = field(default_factory=dict)

    def sent(self, decision_id: str, sender: Place) -> None:
        """A decision arrived, out of a request at `sender`."""
        self._senders.setdefault(decision_id, sender)

    def carried(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """An activity carries these outbox entries; entries that travel again are known."""
        for entry in entries:
            if entry["entry"] == "event":
                self._event(entry["path"], entry["kind"], _at(entry))
            elif entry["entry"] == "decision":
                self._decision(entry)

    def began(self, path: str, at: int) -> None:
        """An activity at `path` is scheduled; what lies beside its way and is idle is over."""
        way = [above for above in _between(path) if above not in self._visits]  # in a free tree a Job may lie below one
        for other in [known for known, span in self._between.items() if not span.busy and known not in way]:
            if path.startswith(f"{parent_path(other)}/"):
                self._close_between(other)
        for above in way:
            self._between.setdefault(above, _Open(at, at)).busy += 1

    def ended(self, path: str, at: int) -> None:
        """An activity at `path` is over, with all its attempts."""
        for above in _between(path):
            if above in self._between:
                self._between[above].busy -= 1
                self._between[above].end = at

    def goes_on(self, path: str, since: int) -> None:
        """In the part of the run before, or in a segment, a visit was entered that goes on."""
        self._visits[path] = _Open(since, since)

    def passed(self, path: str, start: int, end: int) -> None:
        """A visit that a segment has behind it."""
        self._close(f"visit {name_at(path)}", path, start, end, None)

    def leaves(self) -> None:
        """The run goes on in another part: a visit that goes on too is told there, all else that is idle is over."""
        for path in list(self._between):
            self._close_between(path)

    def over(self, at: int, *, start: int, parent: Place | None, state: str, error: str | None) -> None:
        """The run is over, and with it what is still open."""
        for path in list(self._visits):
            self._close_visit(path, at, None)
        for path in list(self._between):
            self._close_between(path)
        facts = self.facts
        about = {**facts.attributes(""), records.STATE: state}
        self.emit(SpanRecord("run", facts.place(""), parent, start, at, about, error=error))

    def _event(self, path: str, kind: str, at: int) -> None:
        if (path, kind) in self._seen:
            return
        self._seen.add((path, kind))
        if kind == "agent.node_started":
            self._visits.setdefault(path, _Open(at, at))
        elif kind in _ENDS and path in self._visits:
            self._close_visit(path, at, _ENDS[kind])

    def _decision(self, entry: Mapping[str, Any]) -> None:
        path, number = entry["path"], entry["decision_id"]
        if (path, number) in self._seen:
            return
        self._seen.add((path, number))
        at, sender, facts = _at(entry), self._senders.get(number), self.facts
        place = replace(facts.at, span_id=span_id_of(facts.run_id, f"{path}#{number}"))
        about = {
            **facts.attributes(path),
            records.NODE: name_at(path),
            "casework.command": entry["command"],
            "casework.accepted": entry["accepted"],
        }
        links = () if sender is None else (sender,)
        self.emit(SpanRecord("decision", place, facts.place(path), at, at, about, links=links))

    def _close_visit(self, path: str, at: int, error: str | None) -> None:
        for between in [known for known in self._between if known.startswith(f"{path}/")]:
            self._close_between(between)
        self._close(f"visit {name_at(path)}", path, self._visits.pop(path).start, at, error)

    def _close_between(self, path: str) -> None:
        found = self._between.pop(path)
        self._close(name_at(path), path, found.start, found.end, None)

    def _close(self, name: str, path: str, start: int, end: int, error: str | None) -> None:
        facts = self.facts
        node = name_at(path.partition("/")[0])
        about = {**facts.attributes(path), records.NODE: node}
        self.emit(SpanRecord(name, facts.place(path), facts.place(parent_path(path)), start, end, about, error=error))


def _at(entry: Mapping[str, Any]) -> int:
    return nanoseconds(datetime.fromisoformat(entry["at"]))


def _between(path: str) -> list[str]:
    """What lies between the visit and `path`, outermost first: of `a.1/b.1/c.1` it is `a.1/b.1`."""
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(2, len(names))]
