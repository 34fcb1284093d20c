"""The cases of a storm: each an input with the idempotency key that it is sent under, however often that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casework.rehearsal import Rehearsal

BLOWS = ("api", "postgres", "temporal")
"""The servers that are killed when the first part is over, one after the other."""


@dataclass(frozen=True)
class Case:
    """One application."""

    key: str
    input: Mapping[str, Any]


@dataclass(frozen=True)
class StormPlan:
    """How hard it blows: cases of the first part, how many under way at a time, seconds between two kills."""

    cases: tuple[Case, ...]
    """Those of the first part, then `side_by_side` for each server that is killed."""
    side_by_side: int = 8
    kill_every_s: float = 3.0

    @property
    def first(self) -> tuple[Case, ...]:
        """The cases of the first part, in which only workers die."""
        return self.cases[: len(self.cases) - self.side_by_side * len(BLOWS)]

    def struck_by(self, number: int) -> tuple[Case, ...]:
        """The cases that are under way when server `number` is killed."""
        begin = len(self.first) + number * self.side_by_side
        return self.cases[begin : begin + self.side_by_side]


def needed(cases: int, side_by_side: int) -> int:
    """How many inputs a storm of so many cases takes: its second part has its own."""
    return cases + side_by_side * len(BLOWS)


def rehearsed(rehearsal: Rehearsal, number: int) -> tuple[Case, ...]:
    """The rehearsal's inputs over and over, each a case of its own."""
    return tuple(Case(f"storm-{place}", rehearsal.tagged(f"storm-{place}", place)) for place in range(number))


def out_of_rows(rows: Sequence[tuple[int, Mapping[str, Any]]]) -> tuple[Case, ...]:
    """Rows of a file, each with its line."""
    return tuple(Case(f"storm-line-{line}", row) for line, row in rows)
