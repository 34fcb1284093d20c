"""Forks at the API's door, for tests that have a worker and no HTTP."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

from casework.api.access import Caller
from casework.api.forking import Forked, fork
from casework.api.requests import ForkRun
from casework.api.services import Services
from casework.durable.client import RunClient
from tests.integration.durable.conftest import TENANT, House

OLGA = Caller("olga", TENANT, frozenset({"operator"}))


async def forked(
    house: House, run_id: UUID, key: str | None = None, run_client: RunClient | None = None, **body: Any
) -> Forked:
    """A fork of the run, as an operator asks for it."""
    services = Services(house.db, run_client or house.runs, house.app, house.settings)
    return await fork(services, OLGA, run_id, ForkRun(**body), key)


async def paths(house: House, run_id: UUID, *, taken: bool) -> list[str]:
    """The steps of a run that it took over, or that it did itself; decisions are neither."""
    steps = await house.steps(run_id)
    return [step.path for step in steps if (step.taken_from is not None) == taken and step.kind != "decision"]


class Counted:
    """Counts by name what is called."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def since(self) -> dict[str, int]:
        """What was called since this was asked before."""
        found, self.calls = dict(self.calls), Counter()
        return found
