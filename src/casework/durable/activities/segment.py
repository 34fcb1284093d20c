"""The segment activity: a chain of quick nodes in one activity, each tool with its own row in the ledger.

It moves like this. A transaction claims the first tool; then, for each one, the tool acts, and one transaction writes
its end, what is to be told of it, and the claim of the next. Only first attempts are made here. A row that is there
already is a result that is used again, or somebody's attempt: before that the segment ends, as it does before a node
that fails, and the node runs alone under its own policy, its attempt here being the first of it.

A tool that only computes (`Tool.computes`) is not claimed where it follows another: its row is written when it has
ended, and one that fails is claimed then, so that its failure is an attempt as any other. Where rows may be there
already, at the beginning and when the activity is done again, all are claimed.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import Literal

from temporalio import activity

from casework import ids
from casework.agents.invoke import invoke, invoke_inline
from casework.agents.tools import Repeat, Tool, ToolContext
from casework.durable import contracts
from casework.durable.activities.faults import fault_point
from casework.durable.activities.operation import fault_of, is_cancelled, operation
from casework.durable.activities.policy import GovernedPolicy
from casework.durable.activities.services import Attempt, Services, patiently, recorded, run_id
from casework.durable.activities.tool import End, Gate, bound_text, claim_of, commit, completed, refused, seen
from casework.durable.activities.walk import DueCall, Walk
from casework.durable.segment_contracts import TOLD, Segment, SegmentReply, StepFault
from casework.errors import (
    ConflictError,
    FatalError,
    OperationError,
    RetryableError,
    StoreUnavailableError,
    ToldError,
)
from casework.graph.bundle import PinnedWorkflow
from casework.store import chains, ledger, projection
from casework.store.chains import Link, OvertakenError
from casework.store.database import Connection
from casework.store.ledger import Case, Claimed, StepClaim
from casework.store.lent import lent
from casework.telemetry.calls import step_attempt, tool_call
from casework.values import Plain, dumps, loads

Met = Literal["claimed", "unclaimed", "found"]
"""How the tool that is due is met: with the claim of this execution, without one, since it only computes, or with a row
that was there."""
Next = tuple[DueCall | None, Met]
"""What is due then."""


class SegmentActivity:
    """`casework.run_segment`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=contracts.RUN_SEGMENT)
    @operation
    async def run_segment(self, segment: Segment) -> SegmentReply:
        """Go through the chain as far as it goes well.

        Raises:
            StoreUnavailableError: the database went away; what was written stays.
            ConflictError: a row holds something else than this run can have written.
            FatalError: the pinned workflow is not there.
        """
        pinned = await self._services.bundle(segment.owner.tenant, segment.workflow, segment.workflow_version)
        if not isinstance(pinned, PinnedWorkflow):
            raise FatalError(f"{segment.workflow!r} version {segment.workflow_version} is a free tree, not a graph")
        walk = Walk(pinned.workflow.spec, segment, self._tool_of(segment))
        async with recorded(self._services.db, segment.owner, segment.path):
            return await _Passage(self._services, segment, walk).through()

    def _tool_of(self, segment: Segment) -> Tools:
        return Tools(self._services, frozenset(segment.quick))


@dataclass(frozen=True)
class Tools:
    """The tools that a segment may call: quick by the bundle, and still so in this worker."""

    services: Services
    quick: frozenset[str]

    def __call__(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        tool = self.services.tools.find(name) if name in self.quick else None
        return tool if tool is not None and tool.quick else None


class _EndedError(Exception):
    """The segment ends here, with this reply."""

    type = RetryableError.__name__
    """What the span of an attempt says that somebody has overtaken, as of one alone."""

    def __init__(self, reply: SegmentReply) -> None:
        super().__init__()
        self.reply = reply


class _Passage:
    """One execution of the activity."""

    def __init__(self, services: Services, segment: Segment, walk: Walk) -> None:
        self._services = services
        self._segment = segment
        self._walk = walk
        self._owner = run_id(segment.owner)
        self._case = Case(None, {})
        self._claimed_at = 0.0
        self._written = 0
        """How many of the walk's visits are committed: what is reported beyond them never happened."""
        self._repeated = activity.info().attempt > 1

    async def through(self) -> SegmentReply:
        """From the first node to where the segment ends."""
        due = self._walk.due()
        met = await self._open(due)
        try:
            while due is not None:
                due, met = await (self._again(due) if met == "found" else self._act(due, met))
        except _EndedError as end:
            return end.reply
        return self._walk.reply()

    async def _open(self, due: DueCall | None) -> Met:
        """First transaction: outbox, claim, and what the tools may look at."""
        tenant = self._segment.owner.tenant
        link = replace(self._told(), next=_asked(due))
        async with self._services.db.transaction() as conn:
            await projection.apply(conn, tenant, self._owner, self._segment.outbox)
            met = await self._write(conn, link)
            self._case = await ledger.case_of(conn, tenant, self._owner)
        self._written = self._walk.passed
        return met

    async def _again(self, due: DueCall) -> Next:
        """Go on from a result that an earlier execution has written, with all that was to be told of it."""
        async with self._services.db.transaction() as conn:
            found = await ledger.found(conn, claim_of(due.call, due.tool, due.arguments))
        if found is None or found.state != "committed":
            # An attempt of this activity was lost there, and the tool's first with it.
            raise _EndedError(self._walk.reply(tried=self._repeated))
        self._returned(due, found.result, len(dumps(found.result)))
        self._walk.forget()
        following = self._walk.due()
        link = replace(self._told(), next=_asked(following))
        return following, await self._alone(link)

    async def _act(self, due: DueCall, met: Met) -> Next:
        """Let the tool act, and go on. What it tells or fails with ends the segment before it."""
        walk, before = self._walk, self._written
        attempt = Attempt(self._services.db, due.call, self._claim(due), self._claimed_at)
        if met == "claimed":
            fault_point("claimed", due.call.path)
        try:
            with step_attempt(due.call):
                if met == "unclaimed":
                    return await self._computed(due, attempt)
                if due.tool.repeat is Repeat.TRANSACTIONAL:
                    return await self._transactional(due, attempt)
                return await self._plain(due, attempt)
        except ToldError as error:
            told = refused(error)
            written = await patiently(lambda: commit(self._services.db, due.call, attempt, told))
            fault = None if written is None else StepFault(TOLD, told.error or "", final=True)
            raise _EndedError(walk.reply(tried=fault is not None, fault=fault)) from error
        except (OvertakenError, ConflictError):
            raise
        except StoreUnavailableError as error:  # costs no attempt; alone, the node waits for the database
            await attempt.failed(bound_text(error))
            raise _EndedError(walk.reply(self._written)) from error
        except (RetryableError, FatalError) as error:
            await attempt.failed(bound_text(error))
            fault = fault_of(error, due.call.path)
            raise _EndedError(walk.reply(self._written, tried=True, fault=fault)) from error
        except asyncio.CancelledError:
            if not is_cancelled():
                raise
            raise _EndedError(walk.reply(self._written, tried=met == "claimed" and self._written == before)) from None

    async def _plain(self, due: DueCall, attempt: Attempt) -> Next:
        gate = Gate(due.tool, attempt)
        made = await seen(due.call, attempt, invoke(due.tool, self._context(due), due.arguments, gate.before_act))
        end = completed(due.call, made)
        fault_point("acted", due.call.path)
        following, link = self._link(due, attempt, end)
        try:
            met = await patiently(lambda: self._alone(link))
        except OvertakenError:
            raise await self._overtaken(due, attempt, end) from None
        fault_point("committed", due.call.path)
        return following, self._met(following, met)

    async def _computed(self, due: DueCall, attempt: Attempt) -> Next:
        """A tool that only computes, and its whole row. It does not wait for anything before that is written."""
        call, walk = due.call, self._walk
        try:
            with tool_call(call.name, call.call_id, attempt.number):
                made = invoke_inline(due.tool, self._context(due), due.arguments)
            end = completed(call, made)
        except OperationError:
            await self._claim_failed(due)
            raise
        fault_point("acted", call.path)
        following, link = self._link(due, attempt, end)
        link = replace(link, unclaimed=_asked(due))
        try:
            met = await patiently(lambda: self._alone(link))
        except (OvertakenError, StoreUnavailableError):
            # Alone the node uses the row that is there, which may be of this very link, or makes it.
            raise _EndedError(walk.reply(self._written)) from None
        fault_point("committed", call.path)
        return following, self._met(following, met)

    async def _claim_failed(self, due: DueCall) -> None:
        """Claim a step that has failed, and has no row. Where it cannot be, nothing is told of this attempt."""
        link = Link(self._segment.owner.tenant, self._owner, next=_asked(due))
        try:
            met = await patiently(lambda: self._alone(link))
        except StoreUnavailableError:
            met = "found"
        if met == "found":
            raise _EndedError(self._walk.reply(self._written))

    async def _alone(self, link: Link) -> Met:
        """Write a link by itself; it comes to its end also where nobody waits for it any more."""
        self._claimed_at = time.monotonic()
        claimed = await chains.write_alone(self._services.db, link)
        self._written = self._walk.passed
        return "claimed" if claimed else "found"

    async def _transactional(self, due: DueCall, attempt: Attempt) -> Next:
        """Effect, ledger row and the next claim in one transaction."""
        tenant, path = due.call.owner.tenant, due.call.path
        async with self._services.db.transaction() as conn:
            if not await ledger.lock_attempt(conn, tenant, self._owner, path, attempt.number):
                raise _EndedError(self._walk.reply())
            async with lent(conn) as connection:
                context = replace(self._context(due), connection=connection)
                made = await seen(due.call, attempt, invoke(due.tool, context, due.arguments))
            fault_point("sent", path)
            following, link = self._link(due, attempt, completed(due.call, made))
            met = await self._write(conn, link)
            fault_point("acted", path)
        self._written = self._walk.passed
        fault_point("committed", path)
        return following, self._met(following, met)

    async def _overtaken(self, due: DueCall, attempt: Attempt, end: End) -> _EndedError:
        """Ask the ledger: it was this very write, whose answer got lost, or somebody else came first."""
        written = await patiently(lambda: commit(self._services.db, due.call, attempt, end))
        return _EndedError(self._walk.reply(self._written if written is None else None))

    def _returned(self, due: DueCall, result: Plain, size: int) -> None:
        self._walk.returned(result, size)
        self._case.evidence[due.tool.name] = result

    async def _write(self, conn: Connection, link: Link) -> Met:
        self._claimed_at = time.monotonic()
        return "claimed" if await chains.write(conn, link) else "found"

    def _link(self, due: DueCall, attempt: Attempt, end: End) -> tuple[DueCall | None, Link]:
        """What is due behind a tool that has come to its end, and the link between the two."""
        done = attempt.result("COMPLETED", end.result)
        self._returned(due, end.result, end.size)
        following = self._walk.due()
        claim = None if self._is_unclaimed(following) else _asked(following)
        return following, replace(self._told(), done=done, done_turn=due.call.turn, next=claim)

    def _told(self) -> Link:
        """The link that tells what is untold, and nothing else."""
        events, output, run = self._walk.untold()
        return Link(self._segment.owner.tenant, self._owner, events=events, output=output, run=run)

    def _is_unclaimed(self, due: DueCall | None) -> bool:
        return due is not None and due.tool.computes and not self._repeated

    def _met(self, due: DueCall | None, met: Met) -> Met:
        return "unclaimed" if self._is_unclaimed(due) else met

    def _claim(self, due: DueCall) -> Claimed:
        return Claimed(ids.step_id(self._owner, due.call.path), chains.FIRST, "claimed")

    def _context(self, due: DueCall) -> ToolContext:
        """What the tool may look at, its own copy: the next one must not see what it made of it."""
        call = due.call
        looks = due.tool.signature.takes_context
        return ToolContext(
            tenant=call.owner.tenant,
            run_id=self._owner,
            path=call.path,
            key=str(ids.step_id(self._owner, call.path)),
            attempt=chains.FIRST,
            input=loads(dumps(self._case.request or {})) if looks else {},
            evidence=loads(dumps(self._case.evidence)) if looks else {},
            policies=GovernedPolicy(self._services, call.owner, call.workflow, call.workflow_version, call.turn),
        )


def _asked(due: DueCall | None) -> StepClaim | None:
    """What the tool is asked for, as it stands in the ledger."""
    return None if due is None else claim_of(due.call, due.tool, due.arguments)
