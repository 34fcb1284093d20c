"""A run as a fork of it needs it: its graph, its visits as they are recorded, and the rows that can be taken over."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from casework.api import detail
from casework.errors import ConflictError, NotFoundError, StateError
from casework.graph import engine
from casework.graph.bundle import PinnedWorkflow
from casework.graph.commands import Decided
from casework.graph.recall import Last, Recorded, key_of, recall
from casework.graph.state import EngineState
from casework.store import forks, reviews, runs, workflows
from casework.store.database import Connection
from casework.store.forks import OutputRow, Placed, VisitEvent
from casework.store.rows import DecisionRow, RunRow, StepRow
from casework.store.runlock import lock_run
from casework.trees.bundle import PinnedTree, pinned_from_plain


def visit_of(path: str) -> str:
    """The visit that a path lies in: its first part."""
    return path.partition("/")[0]


@dataclass(frozen=True)
class Source:
    """The run that is forked, its rows so far, and where its first visit began."""

    row: RunRow
    pinned: PinnedWorkflow
    begun: engine.Step
    visits: list[Recorded]
    steps: list[StepRow]
    messages: list[Placed]
    outputs: list[OutputRow]
    branches: list[str] = field(default_factory=list)
    """Paths at which a person was asked or a run was started: such a branch may have no step."""

    @cached_property
    def order(self) -> list[str]:
        """The paths of the visits, in order."""
        return [visit.path for visit in self.visits]

    def named(self, step: str | None) -> str:
        """The path from which it is forked: `step`, once it is recorded, or the last visit.

        Raises:
            NotFoundError: nothing of that path is recorded.
            StateError: the run has not begun, or took that step over from the run that it was forked from itself.
        """
        run = self.row
        if not self.visits:
            why = "has not begun" if run.status == "PENDING" else f"is {run.status} and has no visit on record"
            raise StateError(f"Run {run.run_id} {why}, so there is no step to fork it from. Start another run.")
        if step is None:
            return self.order[-1]
        known = [*self.order, *(each.path for each in self.steps), *self.branches]
        if not any(each == step or each.startswith(f"{step}/") for each in known):
            near = difflib.get_close_matches(step, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"`casework runs steps {run.run_id}` lists them."
            raise NotFoundError(f"Run {run.run_id} has no step {step!r:.300}. {hint}")
        if visit_of(step) not in self.order:
            raise StateError(
                f"Run {run.run_id} did not do step {step!r} but took it over from run {run.forked_from_run_id}. "
                f"Fork that run from it.",
                details={"forked_from": str(run.forked_from_run_id)},
            )
        return step

    def state_at(self, visit: str) -> EngineState:
        """The engine's state when `visit` was entered.

        Raises:
            StateError: the rows do not tell it.
        """
        return recall(self.pinned.workflow.spec, self.begun, self.visits, visit)

    def from_visit(self, visit: str) -> frozenset[str]:
        """The paths of `visit` and of those after it: what lies in them is not of the past."""
        return frozenset(self.order[self.order.index(visit) :])

    def last_before(self, visit: str) -> Last:
        """What was stored last before `visit`. Which values are alike says nothing: two agents may answer the same."""
        out = {*self.from_visit(visit), *(each.path for each in self.visits if each.failed is not None)}
        rows = [each for each in self.outputs if each.path and each.path not in out]
        rows.sort(key=lambda each: each.created_at)
        answers = [each.key for each in rows if self._speaks(each)]
        return Last(answers[-1] if answers else None, rows[-1].key if rows else None)

    def _speaks(self, output: OutputRow) -> bool:
        """Whether an AGENT node stored it; one of another version may be there under another name."""
        spec = self.pinned.workflow.spec
        made = spec.node(output.path.rpartition(".")[0])
        nodes = [made] if made is not None else [node for node in spec.nodes if key_of(node) == output.key]
        return any(node.type == "AGENT" for node in nodes)


async def source_of(conn: Connection, tenant: str, run_id: UUID) -> Source:
    """The run's rows, between two of its writes.

    Raises:
        NotFoundError: there is no such run.
        StateError: it is a run of a free tree, or its version of the workflow is gone.
    """
    row = await detail.found(conn, tenant, run_id)
    pinned = await graph_of(conn, row, row.workflow_version)
    await _locked(conn, tenant, run_id)
    outputs = await forks.outputs(conn, tenant, run_id)
    made = await reviews.decisions(conn, tenant, run_id)
    return Source(
        row=await detail.found(conn, tenant, run_id),
        pinned=pinned,
        begun=await _begun(conn, row, pinned),
        visits=list(_recorded(await forks.visits(conn, tenant, run_id), outputs, made)),
        steps=await runs.steps(conn, tenant, run_id),
        messages=await forks.placed(conn, tenant, run_id),
        outputs=outputs,
        branches=await forks.branches(conn, tenant, run_id),
    )


async def _locked(conn: Connection, tenant: str, run_id: UUID) -> None:
    try:
        await lock_run(conn, tenant, run_id)
    except ConflictError:  # it was deleted since it was read
        await detail.found(conn, tenant, run_id)
        raise


async def graph_of(conn: Connection, row: RunRow, version: int) -> PinnedWorkflow:
    """A version of the run's workflow.

    Raises:
        StateError: it is that of a free tree.
        NotFoundError: there is no such version.
    """
    bundle: Any = await workflows.get(conn, row.tenant, row.workflow_name, version)
    if bundle is None:
        raise NotFoundError(f"Workflow {row.workflow_name!r} has no version {version}.")
    pinned = pinned_from_plain(bundle)
    if isinstance(pinned, PinnedTree):
        raise StateError(
            f"Version {version} of free tree {row.workflow_name!r} is code and has no graph to begin in. "
            "Start another run."
        )
    return pinned


async def _begun(conn: Connection, row: RunRow, pinned: PinnedWorkflow) -> engine.Step:
    """Where the run's own visits began: at the first node, or in a fork where that began."""
    spec = pinned.workflow.spec
    if row.forked_from_run_id is None:
        return engine.start(spec, row.request, turn_limit=row.turn_limit)
    seed = await forks.seed_of(conn, row.tenant, row.run_id)
    if seed is None:
        raise StateError(f"What run {row.run_id} began with as a fork is gone. Fork run {row.forked_from_run_id}.")
    state = EngineState.from_plain(seed["carried"]["state"])
    return state, engine.pending(spec, state)


def _recorded(
    events: Iterable[VisitEvent], outputs: Iterable[OutputRow], decisions: Iterable[DecisionRow]
) -> Iterable[Recorded]:
    """The visits in order, with how each ended."""
    values: dict[str, dict[str, Any]] = {}
    for output in outputs:
        values.setdefault(output.path, {})[output.key] = output.value
    decided = {each.path: Decided(each.command, each.reason, each.reviewer) for each in decisions if each.accepted}
    order: list[str] = []
    ends: dict[str, VisitEvent] = {}
    for event in events:
        if event.kind == "agent.node_started":
            order.append(event.path)
        else:
            ends[event.path] = event
    for path in order:
        end = ends.get(path)
        failed = None if end is None or end.kind != "agent.node_failed" else end.error or ""
        yield Recorded(path, end is not None, failed, values.get(path, {}), decided.get(path))


def latest_outputs(outputs: Iterable[OutputRow]) -> Mapping[str, OutputRow]:
    """Of each key the output that counts."""
    return {output.key: output for output in outputs}
