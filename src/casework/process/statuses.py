"""Statuses of Transactions, and which may follow which.

A project brings the statuses of its own work. Four belong to the platform and are in every set: COMPLETED and ABORTED,
in which nothing can be changed any more, and HAS_ERROR and ERROR_IN_PROGRESS, the way that every failed Transaction
goes. Their transitions are fixed, so a project cannot make a set in which an error has no way out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from casework.errors import ProcessDeclarationError, TransitionError
from casework.graph.problems import unknown

COMPLETED = "COMPLETED"
ABORTED = "ABORTED"
HAS_ERROR = "HAS_ERROR"
ERROR_IN_PROGRESS = "ERROR_IN_PROGRESS"

PLATFORM = (COMPLETED, ABORTED, HAS_ERROR, ERROR_IN_PROGRESS)
"""Statuses that are in every set, with transitions that no project changes."""
IN_ERROR = frozenset({HAS_ERROR, ERROR_IN_PROGRESS})
"""A Transaction in one of these is the Error process's alone; every other runner ignores it."""

_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,56}")
_ERROR_MOVES: Mapping[str, frozenset[str]] = {
    HAS_ERROR: frozenset({ERROR_IN_PROGRESS, ABORTED}),
    ERROR_IN_PROGRESS: frozenset({ABORTED, HAS_ERROR}),
}


@dataclass(frozen=True)
class StatusSet:
    """The statuses of a project; made by `StatusSet.of`. `moves` has every status, a terminal one without targets."""

    initial: frozenset[str]
    moves: Mapping[str, frozenset[str]]

    @classmethod
    def of(
        cls,
        moves: Mapping[str, str | Iterable[str]],
        *,
        initial: str | Iterable[str],
        terminal: Iterable[str] = (),
    ) -> StatusSet:
        """A set from the moves of its own statuses: from each, to which it may go.

        The platform's four are added, and a way from each status to HAS_ERROR. `initial` are those in which a new
        Transaction may begin. `terminal` are further statuses that nothing follows, beside COMPLETED and ABORTED.

        Raises:
            ProcessDeclarationError: a name, a move or the whole does not hold; says which, and what to do.
        """
        own = {status: _names(targets) for status, targets in moves.items()}
        ends = dict.fromkeys(terminal, frozenset[str]())
        begins = _names(initial)
        _check_names([*own, *ends])
        _check_moves(own, ends, begins)
        _check_ways(own, begins)
        working = {status: targets | {HAS_ERROR} for status, targets in own.items()}
        nothing: frozenset[str] = frozenset()
        return cls(begins, {**working, **ends, **_ERROR_MOVES, COMPLETED: nothing, ABORTED: nothing})

    @property
    def terminal(self) -> frozenset[str]:
        """The statuses in which neither the Transaction nor its related rows can be changed."""
        return frozenset(status for status, targets in self.moves.items() if not targets)

    @property
    def working(self) -> tuple[str, ...]:
        """The statuses of the normal flow that are not terminal, in the order declared."""
        return tuple(status for status, targets in self.moves.items() if targets and status not in IN_ERROR)

    def leads(self, before: str, after: str) -> bool:
        """Whether a Transaction in status `before` can come to `after` without an error, or is there."""
        reached, fresh = {before}, [before]
        while fresh:
            following = self.moves.get(fresh.pop(), frozenset()) - reached - IN_ERROR
            reached |= following
            fresh += following
        return after in reached

    def check_known(self, status: str) -> None:
        """Refuse a status that is not of this set.

        Raises:
            ProcessDeclarationError: names it and those there are.
        """
        if status not in self.moves:
            what = unknown("status", status, self.moves)
            raise ProcessDeclarationError(what[0].upper() + what[1:], field="status")

    def check(self, before: str | None, after: str, *, also: Collection[str] = ()) -> None:
        """Refuse a transition that is not legal. `before` is None for a new Transaction; the same status is legal.

        `also` are targets that hold for this one Transaction beside those of the table, as an error policy opens them.

        Raises:
            ProcessDeclarationError: one of the two is no status of this set.
            TransitionError: names both, what is allowed, and what to do.
        """
        self.check_known(after)
        if before is None:
            allowed: Collection[str] = self.initial
        else:
            self.check_known(before)
            allowed = self.moves[before] | frozenset(also)
        if after not in allowed and (after != before or not allowed):
            raise TransitionError(_refusal(before, after, allowed), details=_details(before, after, allowed))


def _names(given: str | Iterable[str]) -> frozenset[str]:
    return frozenset([given] if isinstance(given, str) else given)


def _details(before: str | None, after: str, allowed: Collection[str]) -> dict[str, object]:
    return {"status": before, "wanted": after, "allowed": sorted(allowed)}


def _refusal(before: str | None, after: str, allowed: Collection[str]) -> str:
    listed = ", ".join(sorted(allowed))
    if before is None:
        return f"A new Transaction cannot begin in status {after}. Begin it in {listed}."
    if not allowed:
        return f"Status {before} is terminal: the Transaction cannot become {after}. Make a new Transaction instead."
    return (
        f"A Transaction cannot go from status {before} to {after}; from {before} it may go to {listed}. "
        "Choose one of these, or add the move to the project's StatusSet."
    )


def _check_names(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _refused(
                f"status {name!r} is no usable name. Write capitals, digits and underscores, at most 57, as in IN_WORK."
            )
        if name in PLATFORM:
            raise _refused(f"status {name} is the platform's; its moves are fixed. Leave it out: it is in every set.")
        if name in seen:
            raise _refused(f"status {name} has moves and is declared terminal. Take one of the two away.")
        seen.add(name)


def _check_moves(own: Mapping[str, frozenset[str]], ends: Collection[str], initial: frozenset[str]) -> None:
    if not initial:
        raise _refused("no status is initial, so no Transaction can begin. Name at least one.")
    for status in sorted(initial - set(own)):
        raise _refused(f"initial status {status} has no moves. Give it some in `moves`, or begin in another.")
    known = {*own, *ends, COMPLETED, ABORTED}
    for status, targets in own.items():
        if not targets:
            raise _refused(f"status {status} has no moves. Give it some, or name it in `terminal`.")
        for target in sorted(targets & IN_ERROR):
            raise _refused(f"the move from {status} to {target} is the platform's, not the project's. Leave it out.")
        for target in sorted(targets - known):
            raise _refused(f"the move from {status} leads to {target!r}: {unknown('status', target, known)}")


def _check_ways(own: Mapping[str, frozenset[str]], initial: frozenset[str]) -> None:
    reached = set(initial)
    fresh = list(initial)
    while fresh:
        following = own.get(fresh.pop(), frozenset()) - reached
        reached |= following
        fresh += following
    for status in own:
        if status not in reached:
            raise _refused(f"status {status} is reached from no initial status. Add a move to it, or take it away.")
    ending = {target for targets in own.values() for target in targets if target not in own}
    while found := {status for status in own if status not in ending and own[status] & ending}:
        ending |= found
    for status in own:
        if status not in ending:
            raise _refused(f"status {status} has no way to a terminal status. Add a move that leads to one.")


def _refused(what: str) -> ProcessDeclarationError:
    return ProcessDeclarationError(f"These statuses do not hold: {what}", field="statuses")


DEFAULT_STATUSES = StatusSet.of(
    {
        "INTAKE_IN_PROGRESS": "INTAKE_COMPLETED",
        "INTAKE_COMPLETED": "PROCESSING_IN_PROGRESS",
        "PROCESSING_IN_PROGRESS": "PROCESSING_COMPLETED",
        "PROCESSING_COMPLETED": "SUBMISSION_IN_PROGRESS",
        "SUBMISSION_IN_PROGRESS": COMPLETED,
    },
    initial="INTAKE_IN_PROGRESS",
)
"""What a project has that declares no statuses of its own."""
