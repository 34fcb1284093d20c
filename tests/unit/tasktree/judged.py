"""A run of planned trees, and what must hold after every such run, whatever happened in it."""

import asyncio
import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from casework.tasktree import Commander, NodeFailedError, NodeState, Stage, TaskNode, TimeLimitError

from .planned import Plan, Planned, Turns, places, prepare

FINAL = {NodeState.COMPLETED, NodeState.EXCEPTION, NodeState.TERMINATED}
TOO_MANY = 20_000
"""Turns of the event loop after which a run is taken to hang; the longest plans take some hundred."""


class ManualClock:
    """Seconds that pass only when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self._calls: list[tuple[float, int, list[Callable[[], object] | None]]] = []
        self._counted = 0

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> "Timer":
        self._counted += 1
        slot: list[Callable[[], object] | None] = [lambda: callback(*args)]
        heapq.heappush(self._calls, (self.now + delay, self._counted, slot))
        return Timer(slot)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        while self._calls and self._calls[0][0] <= self.now:
            function = heapq.heappop(self._calls)[2][0]
            if function is not None:
                function()


@dataclass
class Timer:
    slot: list[Callable[[], object] | None]

    def cancel(self) -> None:
        self.slot[0] = None


class Watch:
    """A listener that checks the order of stages as they happen."""

    def __init__(self) -> None:
        self.ended: dict[str, NodeState] = {}
        self.begun: list[str] = []
        self.nodes: dict[str, TaskNode] = {}

    def __call__(self, node: TaskNode, stage: Stage) -> None:
        path = node.path
        assert self.nodes.setdefault(path, node) is node, "one path, one node"
        if stage in (Stage.AT_JOB_START, Stage.AT_HANDLER_START):
            assert path not in self.begun
            assert node.state is NodeState.ACTIVE
            self.begun.append(path)
            return
        assert node.state in FINAL
        assert all(child.state in FINAL for child in node.children), "children end before parents"
        if stage is Stage.AT_EXCEPTION:
            return
        if node.parent is None and stage is Stage.AT_TERMINATE:
            return  # a Commander has its own end stage after that
        assert path not in self.ended, "one final state"
        self.ended[path] = node.state


@dataclass
class Finished:
    """What is known when a run is over."""

    commander: Commander
    watch: Watch
    turns: Turns
    plans: Sequence[Plan]
    given: Any = None  # the result of the run
    error: BaseException | None = None  # or what it raised
    reports: list[tuple[str, Stage, BaseException]] = field(default_factory=list)
    exited: bool = False  # from outside
    cancelled: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def failure(self) -> NodeFailedError | None:
        return self.error if isinstance(self.error, NodeFailedError) else None


def tree_of(commander: Commander) -> list[TaskNode]:
    nodes: list[TaskNode] = [commander]
    for node in nodes:
        nodes.extend(node.children)
    return nodes


@dataclass(frozen=True)
class Ending:
    """What is done to the run from outside, after so many turns of the loop: exit, cancel or terminate (a node)."""

    what: str = ""
    after: int = 0
    which: int = 0


def run(plans: Sequence[Plan], schedule: Sequence[int], ending: Ending = Ending(), **options: Any) -> Finished:
    """Run the plans as Jobs of a Commander with these options. A run that does not end is a failure."""
    plans = [replace(plan, kind="job") for plan in plans]
    watch, turns, clock = Watch(), Turns(schedule), ManualClock()
    reports: list[tuple[str, Stage, BaseException]] = []
    if any(plan.within for _, plan in places(plans)):
        options = {**options, "clock": clock}
    commander = Commander(
        listener=watch,
        on_callback_error=lambda node, stage, error: reports.append((node.path, stage, error)),
        **options,
    )
    finished = Finished(commander, watch, turns, plans, reports=reports, options=options)

    async def main() -> None:
        jobs = [prepare(Planned(plan, turns), plan, turns) for plan in plans]
        try:
            finished.given = await commander.run(*jobs)  # type: ignore[arg-type]
        except BaseException as error:  # noqa: BLE001 - every end is looked at
            finished.error = error

    async def driven() -> None:
        before = asyncio.all_tasks()
        tasks: list[asyncio.Future[None]] = [asyncio.ensure_future(main())]
        for turn in range(TOO_MANY):
            if turn == ending.after and commander.running:
                tasks.extend(_end(finished, ending, tasks[0]))
            if all(task.done() for task in tasks):
                break
            await asyncio.sleep(0)
            clock.advance(1)
        assert all(task.done() for task in tasks), f"the run hangs:\n{commander.render()}"
        for task in tasks:
            await task
        await asyncio.sleep(0)  # in which those leave that were cancelled before their first step
        assert asyncio.all_tasks() == before, "a task is left behind"

    asyncio.run(driven())
    return finished


def _end(finished: Finished, ending: Ending, running: asyncio.Future[None]) -> Iterator[asyncio.Future[None]]:
    """Do to the run what `ending` says; gives what has to end, too."""
    if ending.what == "exit":
        finished.exited = True
        finished.commander.exit("left")
    elif ending.what == "cancel":
        finished.cancelled = True
        running.cancel()
    elif ending.what == "terminate":
        nodes = [finished.commander, *finished.watch.nodes.values()]
        node = nodes[ending.which % len(nodes)]
        finished.turns.ended.append(node.path)
        yield asyncio.ensure_future(node.terminate())


# ---- what must hold


def judge(finished: Finished) -> None:
    """All that holds after every run."""
    judge_paths(finished)
    for path, plan in places(finished.plans):
        node = finished.watch.nodes.get(path)
        if node is not None:
            judge_state(finished, node, plan)
            judge_reactions(finished, node, plan)
    judge_root(finished)
    failing = sum(failed for done in finished.turns.reactions.values() for _, _, failed in done)
    from_callbacks = [stage for _, stage, error in finished.reports if "callback of" in str(error)]
    assert len(from_callbacks) == failing or finished.options.get("strict_callbacks")


def judge_paths(finished: Finished) -> None:
    """TT-2: the paths are those that the plans give. TT-3: each node that had a place has one final state."""
    known = dict(places(finished.plans))
    watch = finished.watch
    assert set(watch.nodes) - {""} <= set(known)
    assert set(watch.nodes) == set(watch.ended)
    for path, node in watch.nodes.items():
        assert node.state in FINAL
        assert node.state is watch.ended[path] or finished.options.get("strict_callbacks")
        if finished.options.get("keep", "all") == "all":
            below = [one for one in known if one.rpartition("/")[0] == path]
            assert [child.path for child in node.children] == below[: len(node.children)]
            assert all(child.parent is node for child in node.children)


def judge_state(finished: Finished, node: TaskNode, plan: Plan) -> None:
    """TT-4, TT-18, TT-19: the state of a node follows from its body, its children, and who ended it."""
    did, error = finished.turns.bodies.get(node.path, ("never", None))
    unheard = [child for child in _failed_below(finished, node) if child.path not in finished.turns.received]
    if node.state is NodeState.COMPLETED:
        assert did == "returned"
        assert node.result == plan.name
        assert node.exception is None
        assert plan.isolates or not unheard, "an error was swallowed"
    elif node.state is NodeState.EXCEPTION:
        assert node.exception is not None
        if did == "raised" and node.exception is error:
            return
        if isinstance(node.exception, TimeLimitError):
            assert plan.within
        elif isinstance(node.exception, NodeFailedError):
            assert not plan.isolates
            _judge_failure(finished, node.exception, node)
        else:
            assert finished.options.get("strict_callbacks")
    else:
        assert _was_ended(finished, node), f"{node!r} was terminated by nobody"


def _failed_below(finished: Finished, node: TaskNode) -> list[TaskNode]:
    return [one for one in finished.watch.nodes.values() if one.parent is node and one.state is NodeState.EXCEPTION]


def _was_ended(finished: Finished, node: TaskNode) -> bool:
    if node.path in finished.turns.ended or finished.exited or finished.turns.exits:
        return True
    if finished.cancelled or "" in finished.turns.ended:
        return True
    assert node.parent is not None
    return node.parent.state in (NodeState.EXCEPTION, NodeState.TERMINATED)


def _judge_failure(finished: Finished, failure: NodeFailedError, above: TaskNode) -> None:
    """The error names the node where it arose, below the one that it reached, and its cause is the error itself."""
    origin = finished.watch.nodes[failure.path]
    assert above in origin.ancestor_chain
    assert origin.state is NodeState.EXCEPTION
    assert origin.exception is failure.__cause__
    assert not isinstance(failure.__cause__, NodeFailedError)


def judge_root(finished: Finished) -> None:
    """TT-9, TT-10, TT-18, TT-19: what `run` gives."""
    commander, error = finished.commander, finished.error
    if commander.state is NodeState.EXCEPTION:
        assert error is commander.exception or finished.cancelled
        assert isinstance(error, NodeFailedError) or finished.cancelled
        if isinstance(error, NodeFailedError) and "callback of" not in str(error.__cause__):
            _judge_failure(finished, error, commander)
            assert not finished.options.get("isolate")
        return
    if finished.cancelled:
        assert isinstance(error, asyncio.CancelledError)
        return
    if commander.state is NodeState.TERMINATED:
        assert "" in finished.turns.ended
        return
    assert error is None
    unheard = [one for one in _failed_below(finished, commander) if one.path not in finished.turns.received]
    assert not unheard or finished.options.get("isolate"), "an error was swallowed"
    first = next(places(finished.plans))[0]
    if finished.exited or finished.turns.exits:
        assert finished.given == "left"
    elif finished.watch.nodes[first].state is NodeState.COMPLETED:
        assert finished.given == finished.plans[0].name


def judge_reactions(finished: Finished, node: TaskNode, plan: Plan) -> None:
    """TT-13, TT-15, TT-16, TT-17: callbacks in order, those of the end that it had, with the state final by then."""
    done = finished.turns.reactions.get(node.path, [])
    strict = bool(finished.options.get("strict_callbacks"))
    starts = [one for one in done if one[0] == "start"]
    rest = [one for one in done if one[0] != "start"]
    assert done[: len(starts)] == starts
    planned_starts = [one.fails for one in plan.reactions if one.when == "start"]
    assert [failed for _, _, failed in starts] == planned_starts[: len(starts)]
    if node.path in finished.turns.bodies:
        assert len(starts) == len(planned_starts)
    ends = {
        NodeState.COMPLETED: ["end"],
        NodeState.EXCEPTION: ["exception", "end"],
        NodeState.TERMINATED: ["terminate"],
    }[node.state]
    if strict and node.state is NodeState.EXCEPTION and finished.turns.bodies.get(node.path, ("", 0))[0] == "returned":
        return  # failed by its own end callback
    wanted = [(when, one.fails) for when in (*ends, "commander_end") for one in plan.reactions if one.when == when]
    assert [(when, failed) for when, _, failed in rest] == wanted
    assert all(state == node.state.value for _, state, _ in rest)
