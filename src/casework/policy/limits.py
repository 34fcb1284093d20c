"""The thresholds of one purpose, which of them a run has read, and the port to read them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, Protocol

Source = Literal["governed", "fixture_fallback"]


@dataclass(frozen=True, slots=True)
class PolicyLimits:
    """One row of the policy. Ratios are debt to income in percent (36 means 36 %), scores are the bureau's.

    Approve needs a score of `min_score` or more, a ratio of `auto_approve_ratio` or less and fewer delinquencies in
    two years than `material_delinquencies`. A score under `hard_decline_score` declines, and so does a ratio over
    `hard_decline_ratio`. The row is in force from `valid_from` on and before `valid_until`; None leaves that side open.
    """

    purpose: str
    policy_name: str
    version: int
    min_score: int
    auto_approve_ratio: Decimal
    hard_decline_score: int
    hard_decline_ratio: Decimal
    material_delinquencies: int
    valid_from: date | None = None
    valid_until: date | None = None


@dataclass(frozen=True, slots=True)
class PolicyReading:
    """The row that an evaluation uses and where it came from.

    `governed` is the owner's row; `fixture_fallback` the shipped one, used where the setting allows it, with the
    `reason` why the governed row could not be read. `pinned_at` is when the run first read it; None where it is read
    anew.
    """

    limits: PolicyLimits
    source: Source = "governed"
    pinned_at: datetime | None = None
    reason: str | None = None


class PolicySource(Protocol):
    """Reads the policy for one run; knows that run's tenant and which version it has adopted."""

    async def read(self, purpose: str) -> PolicyReading:
        """The row for a normalised purpose.

        Raises:
            PolicyUnavailableError: there is no row, or it cannot be read, and the setting is `fail_closed`.
        """
        ...
