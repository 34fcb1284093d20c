"""The five scenarios in order, played one after the other on one ground."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from casework.drills import crash, lost_ack, policy_change, restart, stale
from casework.drills.ground import Ground
from casework.drills.promises import BrokenOffError, Report, Say

SCENARIOS: tuple[Any, ...] = (crash, lost_ack, restart, stale, policy_change)
"""Modules with NAME, TITLE and `play(ground, report)`."""


async def play_all(ground: Ground, say: Say) -> AsyncIterator[Report]:
    """Play each; yields its report when it is over."""
    for scenario in SCENARIOS:
        report = Report(scenario.NAME, scenario.TITLE, say)
        await played(ground, report, scenario.play)
        yield report


async def played(ground: Ground, report: Report, play: Callable[[Ground, Report], Awaitable[None]]) -> None:
    """Play one; one that breaks off is a promise that did not hold, and the next is played all the same."""
    began = time.monotonic()
    try:
        await play(ground, report)
    except BrokenOffError as error:
        report.promise("The scenario came to its end", False, error)
    report.seconds = time.monotonic() - began
