"""The scenarios in order, and how one is played."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from casework.drills import crash, lost_ack, policy_change, recovery, restart, stale
from casework.drills.ground import Ground
from casework.drills.promises import BrokenOffError, Report
from casework.errors import CaseworkError, InputError
from casework.rehearsal import Rehearsal

SCENARIOS: tuple[Any, ...] = (crash, lost_ack, restart, stale, policy_change, recovery)
"""Modules with NAME, TITLE and `play(ground, report)`."""


def wanted(rehearsal: Rehearsal, names: Sequence[str] = ()) -> list[Any]:
    """The scenarios that an application can play, or those of them that are named.

    Raises:
        InputError: one of the names is none of them.
    """
    possible = {each.NAME: each for each in SCENARIOS if each is not policy_change or rehearsal.changed_policy}
    for name in names:
        if name not in possible:
            raise InputError(f"There is no scenario {name!r} here. Choose from {', '.join(possible)}.", field="only")
    return [each for name, each in possible.items() if not names or name in names]


async def played(ground: Ground, report: Report, play: Callable[[Ground, Report], Awaitable[None]]) -> None:
    """Play one; one that breaks off is a promise that did not hold, and the next is played all the same."""
    began = time.monotonic()
    try:
        await play(ground, report)
    except (BrokenOffError, CaseworkError) as error:
        report.promise("The scenario came to its end", False, error)
    report.seconds = time.monotonic() - began
