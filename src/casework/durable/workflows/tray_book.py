"""What a tray knows of its Transactions: where each stands on the line, its status, and whether it bears the claim."""

from __future__ import annotations

from collections.abc import Container, Iterable
from uuid import UUID

from casework.durable.process_contracts import Outcome, Standing, TrayCarried, TrayStart, Visit, standing
from casework.errors import StateError
from casework.process.lines import Shape
from casework.process.walk import (
    Again,
    Due,
    Left,
    Parted,
    Passed,
    Result,
    TrayState,
    Waits,
    Work,
    advance,
    due,
    enter,
    give_up,
)
from casework.tasktree.counters import Counters


class TrayBook:
    """The state of one tray, moved on by the outcomes of work."""

    def __init__(self, start: TrayStart) -> None:
        self.shape: Shape = start.shape
        carried = start.carried
        self.state = TrayState() if carried is None else carried.state
        groups = start.standing if carried is None else carried.standing
        self._statuses = {uuid: group.status for group in groups for uuid in group.transactions}
        self._held = dict.fromkeys(self._statuses if carried is None else carried.held)

    def enter(self, start: TrayStart) -> None:
        """Put the claimed Transactions on the line.

        Raises:
            StateError: one is there twice, or can go nowhere.
        """
        self.state = enter(self.shape, start.entries)

    @property
    def due(self) -> Due | None:
        """What is to be done next."""
        return due(self.shape, self.state)

    @property
    def holds(self) -> bool:
        """Whether some bear the claim still."""
        return bool(self._held)

    def ahead(self, work: Work, quick: Container[str]) -> tuple[Visit, ...]:
        """The visits that follow if all of the Transactions pass, as long as their stations are `quick`."""
        state, visits = self.state, list[Visit]()
        while True:
            behind = Passed(self.shape.behind(visits[-1].station if visits else work.station))
            if behind.to not in quick:
                return tuple(visits)
            state = advance(self.shape, state, dict.fromkeys(work.transactions, behind))
            following = due(self.shape, state)
            if not isinstance(following, Work) or following.transactions != work.transactions:
                return tuple(visits)
            visits.append(Visit(following.station, following.visit))

    def standing(self, uuids: Iterable[UUID]) -> tuple[Standing, ...]:
        """These, as what the next station is to expect."""
        return standing((uuid, self._statuses[uuid]) for uuid in uuids)

    def take(self, outcomes: Iterable[Outcome]) -> None:
        """Take the outcomes of what is due.

        Raises:
            StateError: they do not answer it.
        """
        results: dict[UUID, Result] = {}
        strays: dict[UUID, str] = {}
        stations = {each.uuid: each.at for each in self.state.travellers}
        for outcome in outcomes:
            uuids = (*outcome.transactions, *outcome.children)
            if outcome.to and outcome.to not in self.shape.places:
                strays |= dict.fromkeys(uuids, f"the Rules send it to {outcome.to!r}, which is not on its tray's line")
            for uuid in outcome.transactions:
                results[uuid] = self._result(outcome, stations[uuid])
            self._note(uuids, outcome)
        self.state = give_up(advance(self.shape, self.state, results), strays)

    def carried(self, part: int, counters: Counters, given_up: int) -> TrayCarried:
        """All that the next part of the tray takes over."""
        return TrayCarried(part, self.state, self.standing(self._statuses), tuple(self._held), counters, given_up)

    def _note(self, uuids: Iterable[UUID], outcome: Outcome) -> None:
        for uuid in uuids:
            self._statuses[uuid] = outcome.status
            if outcome.held:
                self._held[uuid] = None
            else:
                self._held.pop(uuid, None)

    def _result(self, outcome: Outcome, station: str) -> Result:
        match outcome.kind:
            case "passed":
                return Passed(self._to(outcome, station))
            case "parted":
                return Parted(self._to(outcome, station), outcome.children)
            case "again":
                return Again()
            case "waits":
                return Waits()
            case "left":
                return Left(outcome.reason, outcome.takes)
        raise StateError(f"{outcome.kind!r} is no outcome of a station's work.")

    def _to(self, outcome: Outcome, station: str) -> str:
        """Where the Rules send it, if the tray's line has that station; else the next one in order."""
        return outcome.to if outcome.to in self.shape.places else self.shape.behind(station)
