"""The governed policy as a tool sees it: pinned for the run or the turn, and fail-closed unless told otherwise."""

from __future__ import annotations

from uuid import UUID

from casework.durable.activities.services import Services
from casework.durable.contracts import Owner
from casework.errors import PolicyUnavailableError
from casework.policy import PolicyReading
from casework.store import policy as policy_table


class GovernedPolicy:
    """Reads the synced copy. The row first read counts for as long as the workflow's `policyAdoption` says."""

    def __init__(self, services: Services, owner: Owner, workflow: str, version: int, turn: int) -> None:
        self._services = services
        self._owner = owner
        self._workflow = (workflow, version)
        self._turn = turn

    async def read(self, purpose: str) -> PolicyReading:
        """The limits for a normalised purpose.

        Raises:
            PolicyUnavailableError: there is no row, and the setting is `fail_closed`.
        """
        bundle = await self._services.bundle(self._owner.tenant, *self._workflow)
        turn = self._turn if bundle.policy_adoption == "next_turn" else None
        tenant, run = self._owner.tenant, UUID(self._owner.run_id)
        async with self._services.db.transaction() as conn:
            pinned = await policy_table.pinned(conn, tenant, run, purpose, turn)
            if pinned is None:
                row = await policy_table.read(conn, tenant, purpose)
                pinned = None if row is None else await policy_table.pin(conn, tenant, run, purpose, turn, row)
        if pinned is not None:
            return PolicyReading(pinned.limits, "governed", pinned.pinned_at)
        return self._fallback(purpose)

    def _fallback(self, purpose: str) -> PolicyReading:
        limits = (
            self._services.app.fixture_limits(purpose) if self._services.settings.policy.fallback == "fixture" else None
        )
        if limits is not None:
            return PolicyReading(limits, "fixture_fallback", reason=f"no policy row for purpose {purpose!r}")
        raise PolicyUnavailableError(
            f"no policy row for purpose {purpose!r}. Load one with `casework policy load FILE`, "
            "or set CASEWORK_POLICY_FALLBACK=fixture to work with the shipped limits."
        )
