"""What every scenario stands on: a stack on real servers, the destination, the workers, the policy, the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from casework import ids
from casework.drills import own_tables
from casework.drills.client import Client
from casework.drills.destination import Counts, DestinationProcess
from casework.drills.stack import Crew, LocalStack
from casework.durable.activities.faults import FOLDER, FaultFolder
from casework.policy.files import ParsedPolicy, form_of, parse_policy
from casework.rehearsal import Rehearsal
from casework.store import policy, tokens
from casework.store.database import Database
from casework.store.roles import POLICY_OWNER

TENANT = "default"
USER = "local"
"""The stack's own principal, who submits."""


class Ground:
    """Everything a scenario needs, open as an async context manager from the main thread.

    Args:
        make_stack: Gives a stack on the same folder each time, so that one can be stopped and another started.
        folder: For the faults of this drill.
        latency: Seconds that the destination takes to answer.
    """

    def __init__(
        self, make_stack: Callable[[], LocalStack], rehearsal: Rehearsal, folder: Path, latency: float = 0.15
    ) -> None:
        self._make_stack = make_stack
        self.rehearsal = rehearsal
        self.faults = FaultFolder(folder)
        self.destination = DestinationProcess(rehearsal.destination, self.faults.received, latency)
        self.stack = make_stack()
        self.api = Client("http://127.0.0.1", "")
        self.crew = Crew(self.stack, {})

    async def __aenter__(self) -> Self:
        self.faults.prepare()
        try:
            await self.destination.start()
            await self.start_stack()
            await self._prepare()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop everything."""
        try:
            await self.stop_stack()
        finally:
            self.destination.stop()

    async def start_stack(self) -> None:
        """Start servers and API, without a worker."""
        self.stack = self._make_stack()
        await self.stack.start(workers=0)
        self.api = Client(self.stack.api_url, self.stack.token)
        self.crew = Crew(self.stack, self._environment())

    async def stop_stack(self) -> None:
        """Stop API, workers, Temporal and PostgreSQL."""
        await self.api.close()
        await self.stack.stop()

    async def _prepare(self) -> None:
        """What the application's tools need before the first worker starts."""
        if self.rehearsal.policy is not None:
            await self.load_policy(self.rehearsal.policy)
        if self.rehearsal.tables is not None:
            await own_tables.prepare(self.rehearsal.tables, self.stack.admin_dsn)

    async def counts(self) -> Counts:
        """What the destination has counted, and the effects in the application's own tables."""
        counts, tables = await self.destination.counts(), self.rehearsal.tables
        if tables is None:
            return counts
        own = await own_tables.effects(tables, self.stack.admin_dsn)
        return replace(counts, effects={**counts.effects, **own})

    def hire(self, settings: Mapping[str, str]) -> Crew:
        """A crew of its own beside the other, whose workers have these settings."""
        return Crew(self.stack, {**self._environment(), **settings})

    async def load_policy(self, path: Path) -> None:
        """Replace the policy by the rows of a file, in the policy owner's role."""
        parsed = _parsed(path)
        dsn = self.stack.settings.database.policy_dsn()
        opening = Database.open(dsn, role=POLICY_OWNER, max_size=1, name="casework-drill")
        async with await opening as db, db.transaction() as conn:
            await policy.load(conn, parsed.limits, tenant=TENANT, source=path.name, refused=parsed.refused)

    async def reviewer(self, name: str) -> Client:
        """The API as a reviewer of that name."""
        opening = Database.open(self.stack.admin_dsn, role=None, max_size=1, name="casework-drill")
        async with await opening as db, db.transaction() as conn:
            token = await tokens.create(conn, name, TENANT, ["reviewer", "viewer"])
        return Client(self.stack.api_url, token)

    async def submit(self, tag: str, number: int = 0) -> str:
        """Start the run whose id `run_id(tag)` is; input `number`, as a case of its own."""
        return await self.api.submit(self.rehearsal.workflow, self.rehearsal.tagged(tag, number), tag)

    def run_id(self, tag: str) -> str:
        """The id that the run of this tag will have, so that faults can be planned before it starts."""
        return str(ids.run_id_for_key(TENANT, USER, tag))

    def call_name(self, run: Mapping[str, Any], step: Mapping[str, Any]) -> str | None:
        """What the destination calls the calls of a step; None where the step does not go there."""
        subject = run["input"][self.rehearsal.tag_field]
        return self.rehearsal.destination.name_of(step["name"], self.key(run, step), subject)

    def effect_name(self, run: Mapping[str, Any], step: Mapping[str, Any]) -> str | None:
        """The name under which the effects of a step are counted, there or in a table; None where it has none."""
        tables = self.rehearsal.tables
        if tables is not None and step["name"] in tables.effects:
            return self.key(run, step)
        return self.call_name(run, step) if step["name"] in self.rehearsal.destination.acting else None

    def key(self, run: Mapping[str, Any], step: Mapping[str, Any]) -> str:
        """The key of a step's call, as the tool has it."""
        return str(ids.step_id(UUID(run["run_id"]), step["path"]))

    def _environment(self) -> dict[str, str]:
        urls = dict.fromkeys(self.rehearsal.destination.variables, self.destination.url)
        return {**self.rehearsal.settings, **urls, FOLDER: str(self.faults.folder)}


def _parsed(path: Path) -> ParsedPolicy:
    return parse_policy(path.read_text(encoding="utf-8-sig"), form_of(path.name), path.name)
