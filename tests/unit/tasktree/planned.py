"""Trees by plan: what each node does is data, so the same tree can be run again, elsewhere, and in another order.

There is no clock, no chance and no set in the bodies: what a node does depends on its plan and on the turns that it
is given. So the same plans run inside a durable workflow, too. Nothing here needs the tools that make up plans.
"""

import asyncio
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Self

from casework.tasktree import HandlerNode, Job, Stage, TaskNode, call, current_node, handler, submit


@dataclass(frozen=True)
class Reaction:
    """A callback of a node: at its start, exception, termination, end, or at the end of the Commander."""

    when: str  # start, exception, terminate, end, commander_end
    slow: bool = False  # an async function, which takes turns
    fails: bool = False


@dataclass(frozen=True)
class Plan:
    """What a node does: start its children, await some of them, wait a little, perhaps end something, perhaps fail."""

    kind: str  # job or handler
    name: str
    fails: bool = False
    awaits: bool = False  # those of its handlers that have no Job below; a Job's body must not await a queued Job
    goes_on: bool = False  # a Job returns a handler call, with these children
    children: tuple["Plan", ...] = ()
    pauses: bool = False  # takes turns before it starts each child
    handles: bool = False  # goes on where a child that it awaits has failed
    isolates: bool = False
    priority: int = 0  # of a Job
    within: int = 0  # seconds; 0: no limit
    ends: str = ""  # exit, self, parent, first (child): what it ends before its last turns
    reactions: tuple[Reaction, ...] = ()

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Self:
        """The plan that `dataclasses.asdict` made plain, through JSON or not."""
        reactions = tuple(Reaction(**one) for one in plain.get("reactions", ()))
        children = tuple(cls.from_plain(child) for child in plain.get("children", ()))
        return cls(**{**plain, "reactions": reactions, "children": children})

    def to_plain(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


class BrokenError(Exception):
    """What nodes and callbacks fail with when their plans say so."""


class Turns:
    """How long each node waits, by the order in which it asks; and what the nodes say that they did."""

    def __init__(self, schedule: Sequence[int]) -> None:
        self.left = cycle(schedule)
        self.bodies: dict[str, tuple[str, Any]] = {}  # path -> begun, returned, raised or cancelled, and the error
        self.received: dict[str, list[str]] = {}  # path of a node -> paths of those that were handed its error
        self.reactions: dict[str, list[tuple[str, str, bool]]] = {}  # path -> when, state then, whether it failed
        self.ended: list[str] = []  # paths that were terminated by name
        self.exits: list[str] = []  # paths of nodes that called exit
        self.running: list[str] = []  # handlers whose bodies run and do not wait for a node
        self.most = 0  # of them at one time

    async def wait(self) -> None:
        for _ in range(next(self.left)):
            await asyncio.sleep(0)

    def runs(self, path: str) -> None:
        self.running.append(path)
        self.most = max(self.most, len(self.running))


class Planned(Job):
    def __init__(self, plan: Plan, turns: Turns) -> None:
        super().__init__(plan.name)
        self.plan, self.turns = plan, turns

    async def task(self) -> Any:
        if self.plan.goes_on:
            return carry_out(self.plan, self.turns)
        return await act(self.plan, self.turns)


@handler
async def carry_out(plan: Plan, turns: Turns) -> str:
    return await act(plan, turns)


def begin(plan: Plan, turns: Turns, parent: TaskNode | None = None) -> TaskNode:
    """Start the node of `plan` below the running node, or below `parent`."""
    node: TaskNode = Planned(plan, turns) if plan.kind == "job" else carry_out(plan, turns).named(plan.name)
    return attach(prepare(node, plan, turns), plan, parent)


def prepare(node: TaskNode, plan: Plan, turns: Turns) -> TaskNode:
    """Give `node` what `plan` gives it before it has its place."""
    if plan.isolates:
        node.isolate()
    if plan.within:
        node.within(plan.within)
    for reaction in plan.reactions:
        node.on(_stage(plan, reaction), _react_slowly if reaction.slow else _react, reaction, turns, with_node=True)
    return node


def attach(node: TaskNode, plan: Plan, parent: TaskNode | None = None) -> TaskNode:
    if isinstance(node, Job):
        return submit(node, parent, priority=plan.priority) if plan.priority else submit(node, parent)
    assert isinstance(node, HandlerNode)
    return call(node, parent)


def _stage(plan: Plan, reaction: Reaction) -> Stage:
    if reaction.when in ("start", "end"):
        return Stage(f"at_{plan.kind}_{reaction.when}")
    return Stage(f"at_{reaction.when}")


def _react(node: TaskNode, reaction: Reaction, turns: Turns) -> None:
    assert current_node() is node
    turns.reactions.setdefault(node.path, []).append((reaction.when, node.state.value, reaction.fails))
    if reaction.fails:
        raise BrokenError(f"callback of {node.path}")


async def _react_slowly(node: TaskNode, reaction: Reaction, turns: Turns) -> None:
    await turns.wait()
    _react(node, reaction, turns)


async def act(plan: Plan, turns: Turns) -> str:
    """The body of every planned node."""
    me = current_node()
    turns.bodies[me.path] = ("begun", None)
    if plan.kind == "handler":
        turns.runs(me.path)
    try:
        await _do(plan, turns, me)
    except asyncio.CancelledError as error:
        turns.bodies[me.path] = ("cancelled", error)
        raise
    except BaseException as error:
        turns.bodies[me.path] = ("raised", error)
        raise
    finally:
        if me.path in turns.running:
            turns.running.remove(me.path)
    turns.bodies[me.path] = ("returned", None)
    return plan.name


async def _do(plan: Plan, turns: Turns, me: TaskNode) -> None:
    started: list[TaskNode] = []
    awaited: list[TaskNode] = []
    for child in plan.children:
        if plan.pauses:
            await turns.wait()
        started.append(begin(child, turns))
        if plan.awaits and not has_job(child):
            awaited.append(started[-1])
    await turns.wait()
    for node in awaited:
        await _receive(node, plan, turns, me)
    if plan.ends:
        await _end_something(plan, turns, me, started)
    await turns.wait()
    if plan.fails:
        raise BrokenError(me.path)


async def _receive(node: TaskNode, plan: Plan, turns: Turns, me: TaskNode) -> None:
    if plan.kind == "handler":
        turns.running.remove(me.path)
    try:
        await node
    except Exception:
        turns.received.setdefault(node.path, []).append(me.path)
        if not plan.handles:
            raise
    if plan.kind == "handler":
        turns.runs(me.path)


async def _end_something(plan: Plan, turns: Turns, me: TaskNode, started: list[TaskNode]) -> None:
    if plan.ends == "exit":
        turns.exits.append(me.path)
        me.commander.exit("left")
        return
    target = {"self": me, "parent": me.parent, "first": started[0] if started else None}[plan.ends]
    if target is not None:
        turns.ended.append(target.path)
        await target.terminate()


def has_job(plan: Plan) -> bool:
    return plan.kind == "job" or any(has_job(child) for child in plan.children)


def places(plans: Sequence[Plan], above: str = "") -> Iterator[tuple[str, Plan]]:
    """The paths that the nodes of `plans` have, computed from the plans alone: parents first, children in order."""
    counted: dict[str, int] = {}
    for plan in plans:
        ordinal = counted[plan.name] = counted.get(plan.name, 0) + 1
        path = f"{above}{plan.name.replace(' ', '%20')}.{ordinal}"
        yield path, plan
        yield from places(plan.children, f"{path}/")
