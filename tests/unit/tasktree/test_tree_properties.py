"""Random trees: what holds for every tree, and for every order in which its handlers complete.

A plan is a tree of Jobs and handlers, each of which may fail. It is run under many schedules: a schedule says for
how many turns of the loop each node waits. Nothing else differs, so nothing else may explain a difference.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casework.tasktree import (
    Commander,
    HandlerNode,
    Job,
    NodeFailedError,
    NodeState,
    Stage,
    TaskNode,
    call,
    handler,
    submit,
)

FINAL = {NodeState.COMPLETED, NodeState.EXCEPTION, NodeState.TERMINATED}


@dataclass(frozen=True)
class Plan:
    """What a node does: start its children, await some of them, wait a little, perhaps fail."""

    kind: str  # job or handler
    name: str
    fails: bool
    awaits: bool  # of its handlers; a Job's body must not await a Job queued behind it
    goes_on: bool  # a Job returns a handler call, with these children
    children: tuple["Plan", ...] = ()


def plans(*, failing: bool) -> st.SearchStrategy[Plan]:
    fails = st.sampled_from([False, False, False, True]) if failing else st.just(False)

    def node(children: st.SearchStrategy[tuple[Plan, ...]]) -> st.SearchStrategy[Plan]:
        return st.builds(
            Plan,
            kind=st.sampled_from(["job", "handler"]),
            name=st.sampled_from(["a", "b", "c d"]),
            fails=fails,
            awaits=st.booleans(),
            goes_on=st.booleans(),
            children=children,
        )

    return st.recursive(node(st.just(())), lambda below: node(st.lists(below, max_size=4).map(tuple)), max_leaves=14)


schedules = st.lists(st.integers(0, 6), min_size=1, max_size=20)


class Planned(Job):
    def __init__(self, plan: Plan, turns: "Turns") -> None:
        super().__init__(plan.name)
        self.plan, self.turns = plan, turns

    async def task(self) -> Any:
        if self.plan.goes_on:
            return carry_out(self.plan, self.turns)
        return await act(self.plan, self.turns)


class Turns:
    """How long each node waits, by the order in which it asks."""

    def __init__(self, schedule: Sequence[int]) -> None:
        self.left = cycle(schedule)

    async def wait(self) -> None:
        for _ in range(next(self.left)):
            await asyncio.sleep(0)


@handler
async def carry_out(plan: Plan, turns: Turns) -> str:
    return await act(plan, turns)


def has_job(plan: Plan) -> bool:
    return plan.kind == "job" or any(has_job(child) for child in plan.children)


async def act(plan: Plan, turns: Turns) -> str:
    started: list[HandlerNode[str]] = []
    for child in plan.children:
        if child.kind == "job":
            submit(Planned(child, turns))
        else:
            node = call(carry_out(child, turns).named(child.name))
            if plan.awaits and not has_job(child):
                started.append(node)
    await turns.wait()
    for node in started:
        await node
    if plan.fails:
        raise ValueError(plan.name)
    return plan.name


class Watch:
    """A listener that checks the order of stages as they happen."""

    def __init__(self) -> None:
        self.ended: dict[str, NodeState] = {}
        self.begun: list[str] = []

    def __call__(self, node: TaskNode, stage: Stage) -> None:
        if stage in (Stage.AT_JOB_START, Stage.AT_HANDLER_START):
            assert node.path not in self.begun
            assert node.state is NodeState.ACTIVE
            self.begun.append(node.path)
            return
        assert node.state in FINAL
        assert all(child.state in FINAL for child in node.children), "children end before parents"
        if stage is Stage.AT_EXCEPTION:
            return
        assert node.path not in self.ended, "one final state"
        self.ended[node.path] = node.state


def tree_of(commander: Commander) -> list[TaskNode]:
    nodes: list[TaskNode] = [commander]
    for node in nodes:
        nodes.extend(node.children)
    return nodes


def run(plans: Sequence[Plan], schedule: Sequence[int]) -> tuple[Commander, Watch, NodeFailedError | None]:
    """Run the plans as Jobs; errors of callbacks (there are none) would be raised."""
    watch, turns, broken = Watch(), Turns(schedule), list[BaseException]()
    commander = Commander(listener=watch, on_callback_error=lambda _node, _stage, error: broken.append(error))
    failure: NodeFailedError | None = None

    async def main() -> None:
        nonlocal failure
        before = asyncio.all_tasks()
        try:
            await asyncio.wait_for(commander.run(*(Planned(plan, turns) for plan in plans)), 20)
        except NodeFailedError as error:
            failure = error
        assert asyncio.all_tasks() == before, "no task is left behind"

    asyncio.run(main())
    assert broken == []
    return commander, watch, failure


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(plans(failing=True), min_size=1, max_size=3), schedules)
def test_every_node_ends_once_and_children_end_before_parents(tops: list[Plan], schedule: list[int]) -> None:
    """TT-3, TT-4. Under random failures and completion orders each node has exactly one final state."""
    commander, watch, failure = run(tops, schedule)
    nodes = tree_of(commander)
    assert all(node.state in FINAL for node in nodes)
    assert {node.path: node.state for node in nodes} == watch.ended
    assert len({node.path for node in nodes}) == len(nodes)
    if failure is None:
        assert all(node.state is NodeState.COMPLETED for node in nodes)
    else:
        assert commander.state is NodeState.EXCEPTION
        failed = {node.path: node for node in nodes}[failure.path]
        assert failed.state is NodeState.EXCEPTION
        assert failed.exception is failure.__cause__
        assert isinstance(failure.__cause__, ValueError)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(plans(failing=False), min_size=1, max_size=3), schedules, schedules)
def test_paths_do_not_depend_on_the_schedule(tops: list[Plan], one: list[int], other: list[int]) -> None:
    """TT-2. The same calls in the same order give the same paths, however completions interleave."""
    trees = [tree_of(run(tops, schedule)[0]) for schedule in (one, other)]
    first, second = ({node.path: (node.name, node.state, node.result) for node in tree} for tree in trees)
    assert first == second


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(plans(failing=True), min_size=1, max_size=2), schedules, st.integers(0, 30))
def test_exit_and_cancellation_at_any_moment_end_every_node(tops: list[Plan], schedule: list[int], after: int) -> None:
    """TT-10, TT-19. Whenever the run is ended from outside, no node is left, and nothing hangs."""
    for end in ("exit", "cancel"):
        watch, turns = Watch(), Turns(schedule)
        commander = Commander(listener=watch)

        async def main(end: str = end, commander: Commander = commander, turns: Turns = turns) -> None:
            running = asyncio.ensure_future(commander.run(*(Planned(plan, turns) for plan in tops)))
            for _ in range(after):
                await asyncio.sleep(0)
            if commander.running:
                commander.exit("done") if end == "exit" else running.cancel()
            await asyncio.wait([running], timeout=20)
            assert running.done()
            if not running.cancelled():
                running.exception()

        asyncio.run(main())
        nodes = tree_of(commander)
        if len(nodes) > 1 or after:
            assert all(node.state in FINAL for node in nodes)
            assert {node.path: node.state for node in nodes} == watch.ended
