"""Random programs in which anybody waits for anybody: each ends, and only a wait that never ends is refused.

A program is a list of nodes. Each starts those that hang below it, then waits for others, whichever they are.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casework.tasktree import (
    Commander,
    EndlessWaitError,
    Job,
    NodeTerminatedError,
    Stage,
    TaskNode,
    TreeError,
    call,
    current_node,
    handler,
    submit,
)

from .judged import FINAL, tree_of

HANGS = 400
"""Turns of the event loop; the longest of these programs that ends takes less than half as many."""


@dataclass(frozen=True)
class Act:
    what: str  # await, gather, terminate
    which: int


@dataclass(frozen=True)
class Step:
    """One node of a program: what it is, below which earlier one it hangs, and what it does."""

    kind: str  # job, goes on (a job that does so), handler
    below: int
    acts: tuple[Act, ...]
    at_start: tuple[Act, ...] = ()  # in an async callback
    at_end: tuple[Act, ...] = ()
    on_the_way_out: tuple[Act, ...] = ()  # when cancelled
    priority: int = 0
    at_root: bool = False  # the parent is the Commander


Program = list[Step]


def programs(*, terminating: bool) -> st.SearchStrategy[Program]:
    acts = st.lists(
        st.builds(Act, st.sampled_from(["await", "gather", *(["terminate"] * terminating)]), st.integers(0, 6)),
        max_size=2,
    ).map(tuple)
    rarely = st.one_of(st.just(()), st.just(()), acts)
    return st.lists(
        st.builds(
            Step,
            kind=st.sampled_from(["job", "goes on", "handler"]),
            below=st.integers(0, 6),
            acts=acts,
            at_start=rarely,
            at_end=rarely,
            on_the_way_out=rarely if terminating else st.just(()),
            priority=st.sampled_from([0, 0, 1, -1]),
            at_root=st.sampled_from([False, False, False, True]),
        ),
        min_size=2,
        max_size=7,
    )


class Playing:
    """One run of a program."""

    def __init__(self, program: Program, schedule: Sequence[int]) -> None:
        self.program = program
        self.left = cycle(schedule)
        self.nodes: dict[int, TaskNode] = {}
        self.refused: list[tuple[int, int]] = []
        self.hangs = False

    async def turns(self) -> None:
        for _ in range(next(self.left)):
            await asyncio.sleep(0)

    async def body(self, place: int) -> int:
        step = self.program[place]
        try:
            await self.turns()
            for other, candidate in enumerate(self.program):
                if other > place and candidate.below % other == place:
                    self.start(other)
            for act in step.acts:
                await self.turns()
                await self.do(place, act)
        except asyncio.CancelledError:
            for act in step.on_the_way_out:
                await self.do(place, act)
            raise
        return place

    def start(self, place: int) -> None:
        step = self.program[place]
        node: TaskNode = Playable(self, place) if step.kind != "handler" else play(self, place)
        node.on(Stage(f"at_{'handler' if step.kind == 'handler' else 'job'}_start"), self.react, place, step.at_start)
        for stage in ("at_handler_end" if step.kind == "handler" else "at_job_end", "at_terminate"):
            node.on(Stage(stage), self.react, place, step.at_end)
        parent = current_node().commander if step.at_root else None
        try:
            if isinstance(node, Job):
                submit(node, parent, step.priority)
            else:
                call(node, parent)  # type: ignore[type-var]
        except EndlessWaitError:
            self.refused.append((place, place))
        except TreeError:
            return  # the parent is being ended
        else:
            self.nodes[place] = node

    async def react(self, place: int, acts: Sequence[Act]) -> None:
        for act in acts:
            await self.turns()
            await self.do(place, act)

    async def do(self, place: int, act: Act) -> None:
        target = self.nodes.get(act.which % len(self.program))
        if target is None or target in current_node().ancestor_chain:
            return
        try:
            if act.what == "terminate":
                await target.terminate()
            elif act.what == "gather":
                await asyncio.gather(target, asyncio.sleep(0))
            else:
                await target
        except EndlessWaitError:
            self.refused.append((place, act.which % len(self.program)))
        except NodeTerminatedError:
            return

    def play(self, **options: Any) -> "Playing":
        commander = Commander(on_callback_error=_no_callback_fails, **options)

        async def driven() -> None:
            self.nodes[0] = Playable(self, 0)
            before = asyncio.all_tasks()
            running = asyncio.ensure_future(commander.run(self.nodes[0]))  # type: ignore[arg-type]
            for _ in range(HANGS):
                if running.done():
                    break
                await asyncio.sleep(0)
            else:
                self.hangs = True
                for task in asyncio.all_tasks() - before:
                    task._log_destroy_pending = False  # type: ignore[attr-defined]  # left behind on purpose
                return
            assert running.exception() is None
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == before
            assert all(node.state in FINAL for node in tree_of(commander))

        loop = asyncio.new_event_loop()  # not asyncio.run, which would wait for what hangs
        try:
            loop.run_until_complete(driven())
        finally:
            loop.close()
        return self


class Playable(Job):
    def __init__(self, playing: Playing, place: int) -> None:
        super().__init__(f"n{place}")
        self.playing, self.place = playing, place

    async def task(self) -> Any:
        if self.playing.program[self.place].kind == "goes on":
            return play(self.playing, self.place)
        return await self.playing.body(self.place)


@handler
async def play(playing: Playing, place: int) -> int:
    return await playing.body(place)


def _no_callback_fails(node: TaskNode, stage: Stage, error: BaseException) -> None:
    if not isinstance(error, asyncio.CancelledError):
        raise AssertionError(f"{stage} of {node!r}") from error


schedules = st.lists(st.integers(0, 4), min_size=1, max_size=8)
limits = st.sampled_from([None, None, 1, 2])
usual = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@usual
@given(programs(terminating=True), schedules, limits)
def test_whoever_waits_for_whom_it_ends(program: Program, schedule: list[int], most: int | None) -> None:
    """TT-12, TT-20. In bodies, callbacks and on the way out; a wait that can never end is an error where it begins."""
    assert not Playing(program, schedule).play(max_handlers=most).hangs


@usual
@given(programs(terminating=False), schedules, limits)
def test_only_a_wait_that_never_ends_is_refused(program: Program, schedule: list[int], most: int | None) -> None:
    """TT-20. What is refused would hang: without the check, the same program does; and none does that passed it."""
    checked = Playing(program, schedule).play(max_handlers=most)
    assert not checked.hangs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("casework.tasktree.node.check_wait", lambda *_: None)
        patch.setattr("casework.tasktree.job.check_place", lambda *_: None)
        unchecked = Playing(program, schedule).play(max_handlers=most)
    assert unchecked.hangs == bool(checked.refused)
