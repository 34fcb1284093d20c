"""The five scenarios in order, and how one is played."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from casework.drills import crash, lost_ack, policy_change, restart, stale
from casework.drills.ground import Ground
from casework.drills.promises import BrokenOffError, Report
from casework.errors import CaseworkError

SCENARIOS: tuple[Any, ...] = (crash, lost_ack, restart, stale, policy_change)
"""Modules with NAME, TITLE and `play(ground, report)`."""


async def played(ground: Ground, report: Report, play: Callable[[Ground, Report], Awaitable[None]]) -> None:
    """Play one; one that breaks off is a promise that did not hold, and the next is played all the same."""
    began = time.monotonic()
    try:
        await play(ground, report)
    except (BrokenOffError, CaseworkError) as error:
        report.promise("The scenario came to its end", False, error)
    report.seconds = time.monotonic() - began
