"""The walk of a tray through its line: `(shape, state, results) -> (state, what is due)`, pure.

How it moves: `enter` puts the claimed Transactions on the line. `due` names the work that is next: the earliest station
at which some stand, and of those the ones on the same visit and attempt, so that a tray stays together as far as its
Rules let it. The driver does the work for each of them and comes back with a result for each (`advance`), which
moves each on its own. What failed leaves the line at once: no station sees it again, the Finalizer neither.

A split's children stand where the Rules send them, in the same tray. Their parent is held, and is due at the next join
once no child can come there any more. Whether all have come is for the driver to count, as some may be in other trays;
for those it waits (`Waits`), and is due again when nothing else is.

Annotations are types and not texts here: what is written into histories is read by them, and a text is evaluated anew
for every value.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from uuid import UUID

from casework.errors import StateError
from casework.process.lines import END, MONITOR, Shape

MAX_VISITS = 100
"""Most visits of one Transaction to one task: Rules that lead back for ever end as an error."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A Transaction as it enters the line; `to` is where the Rules behind the Monitor send it."""

    uuid: UUID
    to: str
    parent: UUID | None = None
    skip_until: str | None = None
    refused: str | None = None
    """Why it cannot go anywhere; it is given up at once."""


@dataclass(frozen=True, slots=True)
class Passed:
    """The work is done; the Transaction goes on to station `to` (`Line.route`)."""

    to: str


@dataclass(frozen=True, slots=True)
class Parted:
    """The Transaction was split; it and its children, in order, go on to `to`."""

    to: str
    children: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Again:
    """The attempt failed, and another one follows."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Nothing was done: the Transaction waits for others, which are in other trays. It is due again behind the rest."""


@dataclass(frozen=True, slots=True)
class Left:
    """The Transaction leaves the line: it failed, or is not any more what its tray took it for.

    `takes` are others that leave with it: the other children of its parent, or all that are not through.
    """

    reason: str
    takes: Literal["none", "siblings", "all"] = "none"


Result = Passed | Parted | Again | Waits | Left


@dataclass(frozen=True, slots=True)
class Traveller:
    """Where a Transaction of the tray stands."""

    uuid: UUID
    at: str
    parent: UUID | None = None
    visits: Mapping[str, int] = field(default_factory=dict)
    """Visits of each task so far, the present one included."""
    attempt: int = 1
    children: tuple[UUID, ...] = ()
    """Those that it is held for; it is due at `at` when they have come there, or cannot."""
    waits: bool = False
    """Whether it was due, and waits for others."""
    doomed: str | None = None
    """Why it is to leave the line by no fault of its own."""
    left: str | None = None
    """Why it left the line before its end."""

    @property
    def gone(self) -> bool:
        """Whether nothing is due for it any more."""
        return self.at == END


@dataclass(frozen=True, slots=True)
class TrayState:
    """The Transactions of a tray, in the order of their claim, children behind those that were there."""

    travellers: tuple[Traveller, ...] = ()

    def of(self, uuid: UUID) -> Traveller | None:
        """The traveller with that id."""
        return next((each for each in self.travellers if each.uuid == uuid), None)


@dataclass(frozen=True, slots=True)
class Work:
    """A station's work on some Transactions of the tray, in their order. `visit` and `attempt` count from 1.

    `waited`: it was due before, and the Transactions wait for others; there is nothing else to do meanwhile.
    """

    station: str
    visit: int
    attempt: int
    transactions: tuple[UUID, ...]
    waited: bool = False

    @property
    def path(self) -> str:
        """The path of this visit below the tray: with the tray's id the identity of what is done in it."""
        return f"{self.station}.{self.visit}"


@dataclass(frozen=True, slots=True)
class GiveUp:
    """These Transactions fail by no fault of their own; the driver records an error for each, and answers Left."""

    reasons: Mapping[UUID, str]


Due = Work | GiveUp


def enter(shape: Shape, entries: Iterable[Entry]) -> TrayState:
    """Put claimed Transactions on the line. One that is to skip tasks stands at the task at which it goes on.

    Raises:
        StateError: a Transaction is there twice, or enters at no station.
    """
    made = tuple(_entered(shape, entry) for entry in entries)
    if len({each.uuid for each in made}) < len(made):
        raise StateError("A Transaction stands twice in one tray. Claim each once.")
    return TrayState(made)


def due(shape: Shape, state: TrayState) -> Due | None:
    """What is to be done next; None where the tray is through."""
    if doomed := {each.uuid: each.doomed for each in state.travellers if each.doomed and not each.gone}:
        return GiveUp(doomed)
    where = {each.uuid: each for each in state.travellers}
    standing = [each for each in state.travellers if not each.gone and not _held(shape, where, each)]
    if not standing:
        return None
    ready = [each for each in standing if not each.waits]
    station, visit, attempt = min(_turn(shape, each) for each in ready or standing)
    ids = tuple(each.uuid for each in ready or standing if _turn(shape, each) == (station, visit, attempt))
    return Work(shape.stations[station], visit, attempt, ids, waited=not ready)


def advance(shape: Shape, state: TrayState, results: Mapping[UUID, Result]) -> TrayState:
    """Take the results of the work that is due; a result for each of its Transactions, and for no other.

    Raises:
        StateError: results do not answer what is due, or lead to no station.
    """
    pending = due(shape, state)
    wanted = () if pending is None else pending.transactions if isinstance(pending, Work) else tuple(pending.reasons)
    if set(results) != set(wanted):
        raise StateError(f"The results are for {_ids(results)}; due are {_ids(wanted)}. Give one for each of these.")
    if isinstance(pending, GiveUp) and not all(isinstance(each, Left) for each in results.values()):
        raise StateError("What is given up leaves the line. Answer Left for each.")
    where = {each.uuid: each for each in state.travellers}
    for uuid in wanted:
        _move(shape, where, where[uuid], results[uuid])
    for uuid in wanted:  # behind all moves: who is through by now is not taken along
        _take_along(where, where[uuid], results[uuid])
    return TrayState(tuple(where.values()))


def give_up(state: TrayState, reasons: Mapping[UUID, str]) -> TrayState:
    """Let Transactions that are on the line fail by no fault of their own: giving them up is what is due next."""
    return TrayState(
        tuple(
            each if each.gone or each.uuid not in reasons else replace(each, doomed=each.doomed or reasons[each.uuid])
            for each in state.travellers
        )
    )


def _entered(shape: Shape, entry: Entry) -> Traveller:
    traveller = Traveller(entry.uuid, END, entry.parent)
    if entry.refused is not None:
        return replace(traveller, at=shape.stations[1], doomed=entry.refused)
    if entry.skip_until is None:
        return _at(shape, traveller, entry.to)
    if entry.skip_until in shape.kinds:
        return _at(shape, traveller, entry.skip_until)
    reason = f"it is to go on at task {entry.skip_until!r}, which process {shape.process!r} does not have"
    return replace(traveller, at=shape.stations[1], doomed=reason)


def _at(shape: Shape, traveller: Traveller, station: str) -> Traveller:
    """The traveller at a station, on one more visit."""
    if station not in shape.places or station == MONITOR:
        raise StateError(f"Process {shape.process!r} has no station {station!r} where a Transaction can go.")
    visit = traveller.visits.get(station, 0) + 1
    doomed = f"it has been at task {station!r} {MAX_VISITS} times" if visit > MAX_VISITS else None
    visits = {**traveller.visits, station: visit}
    return replace(traveller, at=station, visits=visits, attempt=1, children=(), waits=False, doomed=doomed)


def _move(shape: Shape, where: dict[UUID, Traveller], traveller: Traveller, result: Result) -> None:
    match result:
        case Again():
            where[traveller.uuid] = replace(traveller, attempt=traveller.attempt + 1)
        case Waits():
            where[traveller.uuid] = replace(traveller, waits=True)
        case Passed(to):
            where[traveller.uuid] = _at(shape, traveller, to)
        case Left(reason):
            where[traveller.uuid] = replace(traveller, at=END, children=(), doomed=None, left=reason)
        case Parted(to, children):
            _part(shape, where, traveller, to, children)


def _part(shape: Shape, where: dict[UUID, Traveller], parent: Traveller, to: str, children: tuple[UUID, ...]) -> None:
    if any(child in where for child in children) or len(set(children)) < len(children):
        raise StateError(f"Children of {parent.uuid} are in the tray already. Give each an id of its own.")
    join = shape.join_behind(parent.at)
    if join is None or not children:
        where[parent.uuid] = _at(shape, parent, to)
    else:
        where[parent.uuid] = replace(_at(shape, parent, join), children=children)
    for child in children:
        where[child] = _at(shape, Traveller(child, END, parent.uuid), to)


def _take_along(where: dict[UUID, Traveller], gone: Traveller, result: Result) -> None:
    """Let those leave that the result takes with it."""
    if not isinstance(result, Left) or result.takes == "none":
        return
    reason = f"it leaves with Transaction {gone.uuid}: {result.reason}"
    for uuid, each in where.items():
        sibling = gone.parent is not None and each.parent == gone.parent
        if not each.gone and (result.takes == "all" or (result.takes == "siblings" and sibling)):
            where[uuid] = replace(each, doomed=each.doomed or reason)


def _held(shape: Shape, where: Mapping[UUID, Traveller], traveller: Traveller) -> bool:
    """Whether a child can still come to the join at which the traveller is held."""
    place = shape.places[traveller.at]
    return any(not where[child].gone and shape.places[where[child].at] <= place for child in traveller.children)


def _turn(shape: Shape, traveller: Traveller) -> tuple[int, int, int]:
    return shape.places[traveller.at], traveller.visits[traveller.at], traveller.attempt


def _ids(uuids: Iterable[UUID]) -> str:
    return ", ".join(sorted(str(uuid) for uuid in uuids)) or "none"
