"""Place, name, path and state of a node; what a queue of Jobs and a handler do."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casework.tasktree import (
    AlreadyAttachedError,
    Commander,
    IllegalTransitionError,
    Job,
    NodeNameError,
    NodeState,
    NotAttachedError,
    TaskNode,
    call,
    current_node,
    handler,
    submit,
)
from casework.tasktree.mechanics import move
from casework.tasktree.paths import encoded


class Do(Job):
    """A Job whose body is given."""

    def __init__(self, body: Any, name: str | None = None) -> None:
        super().__init__(name)
        self.body = body

    async def task(self) -> Any:
        return await self.body()


@handler
async def nothing() -> None:
    await asyncio.sleep(0)


async def test_a_node_knows_its_place() -> None:
    """TT-1. parent, children, ancestor_chain, commander."""
    commander = Commander()

    async def body() -> list[TaskNode]:
        first, second = call(nothing()), call(nothing())
        assert current_node().children == (first, second)
        assert first.ancestor_chain == (first, current_node(), commander)
        assert first.commander is commander
        return [first, second]

    job = Do(body)
    children = await commander.run(job)
    assert commander.parent is None
    assert commander.path == ""
    assert commander.children == (job,)
    assert job.parent is commander
    assert [child.path for child in children] == ["Do.1/nothing.1", "Do.1/nothing.2"]
    job.data["seen"] = 1
    assert job.data == {"seen": 1}


def test_a_node_without_a_place_has_no_path() -> None:
    job = Job("waiting")
    assert (job.state, job.parent, job.children, job.result, job.exception) == (NodeState.PENDING, None, (), None, None)
    assert "waiting" in repr(job)
    with pytest.raises(NotAttachedError, match="waiting"):
        _ = job.path
    with pytest.raises(NotAttachedError, match="waiting"):
        _ = job.commander


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain_Name-1", "plain_Name-1"),
        ("a.b/c", "a%2Eb%2Fc"),
        ("50%", "50%25"),
        ("prüfung", "pr%C3%BCfung"),
        ("\0 \n", "%00%20%0A"),
        ("\ud800", "%ED%A0%80"),
        ("x\n", "x%0A"),
        ("é", "%C3%A9"),
    ],
)
def test_names_are_encoded_in_paths(name: str, expected: str) -> None:
    """TT-2. Characters outside `[A-Za-z0-9_-]` are percent-encoded."""
    assert encoded(name) == expected


@given(st.lists(st.text(st.characters(), min_size=1), min_size=2, max_size=2, unique=True))
def test_two_names_never_share_a_path(names: list[str]) -> None:
    assert encoded(names[0]) != encoded(names[1])


@pytest.mark.parametrize("name", ["", 7, None, b"x"])
def test_a_name_is_a_text(name: Any) -> None:
    with pytest.raises(NodeNameError):
        nothing().named(name)


async def test_the_name_is_fixed_when_the_node_is_attached() -> None:
    async def body() -> None:
        with pytest.raises(AlreadyAttachedError):
            call(nothing()).named("late")

    await Commander().run(Do(body))


async def test_ordinals_count_per_parent_and_name() -> None:
    """TT-2. The ordinal is counted per parent and name, not per tree."""
    paths: list[str] = []

    @handler
    async def outer() -> None:
        paths.append(call(nothing()).path)
        paths.append(call(nothing().named("other")).path)

    async def body() -> None:
        await outer()
        await outer()

    await Commander().run(Do(body, "top"))
    assert paths == [
        "top.1/outer.1/nothing.1",
        "top.1/outer.1/other.1",
        "top.1/outer.2/nothing.1",
        "top.1/outer.2/other.1",
    ]


def test_states_move_only_forward() -> None:
    """TT-3. A transition that is not legal is an error, and changes nothing."""
    legal = {
        NodeState.PENDING: {NodeState.ACTIVE, NodeState.TERMINATED},
        NodeState.ACTIVE: {NodeState.COMPLETED, NodeState.EXCEPTION, NodeState.TERMINATED},
    }
    for before in NodeState:
        for after in NodeState:
            node = Job()
            node._state_ = before
            if after in legal.get(before, set()):
                move(node, after)
                assert node.state is after
            else:
                with pytest.raises(IllegalTransitionError):
                    move(node, after)
                assert node.state is before


async def test_bodies_do_not_wait_for_children_of_earlier_jobs() -> None:
    """TT-5. The next body starts when the previous one has returned, not when its children have ended."""
    log: list[str] = []
    gate = asyncio.Event()

    @handler
    async def waits() -> None:
        await gate.wait()
        log.append("child ended")

    async def first() -> None:
        call(waits())

    async def second() -> None:
        log.append("second body")
        gate.set()

    await Commander().run(Do(first), Do(second))
    assert log == ["second body", "child ended"]


async def test_jobs_are_submitted_from_anywhere_and_run_in_order() -> None:
    """TT-6. From a Job, from a handler, below the submitter or below an ancestor; the queue is one."""
    order: list[str] = []

    async def leaf() -> str:
        order.append(current_node().path)
        return "leaf"

    @handler
    async def submits() -> Any:
        return await submit(Do(leaf, "from-handler"))

    async def body() -> Any:
        submit(Do(leaf, "below"))
        submit(Do(leaf, "beside"), parent=current_node().commander)
        return submits()

    assert await Commander().run(Do(body, "top")) == "leaf"
    assert order == ["top.1/below.1", "beside.1", "top.1/from-handler.1"]


async def test_a_job_need_not_call_super() -> None:
    class Bare(Job):
        def __init__(self, value: int) -> None:
            self.value = value

        async def task(self) -> int:
            return self.value

    assert await Commander().run(Bare(7)) == 7


async def test_a_method_can_be_a_handler() -> None:
    """TT-7. Methods, too; and awaiting a pending call inside a node starts it there."""

    class Desk:
        def __init__(self, word: str) -> None:
            self.word = word

        @handler
        async def say(self, times: int = 1) -> str:
            return self.word * times

        @staticmethod
        @handler
        async def path() -> str:
            return current_node().path

    async def body() -> tuple[str, str]:
        return await Desk("ha").say(times=2), await Desk.path()

    assert await Commander().run(Do(body)) == ("haha", "Do.1/path.1")


async def test_a_returned_handler_call_that_runs_already_gives_the_result() -> None:
    """TT-8. `return call(...)` waits for that child outside the queue; a returned Job is a plain value."""
    order: list[str] = []

    @handler
    async def slow() -> str:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        order.append("slow")
        return "slow result"

    class Calls(Job):
        async def task(self) -> Any:
            return call(slow())

    async def quick() -> None:
        order.append("quick")

    assert await Commander().run(Calls(), Do(quick)) == "slow result"
    assert order == ["quick", "slow"]


async def test_several_awaiters_get_one_result() -> None:
    """TT-7. A node may be awaited by many, before and after its end, through gather and wait_for."""

    @handler
    async def value() -> list[int]:
        await asyncio.sleep(0)
        return [1]

    @handler
    async def reads(node: TaskNode) -> Any:
        return await node

    async def body() -> None:
        node = call(value())
        results = await asyncio.gather(node, *(reads(node) for _ in range(3)), asyncio.wait_for(node, 5))
        assert all(result is results[0] for result in results)
        assert await node is results[0]

    await Commander().run(Do(body))


async def test_context_variables_of_jobs_do_not_mix() -> None:
    """A Job sees the context of its submitter, not that of the Job before it."""
    from contextvars import ContextVar

    word: ContextVar[str] = ContextVar("word", default="none")

    async def first() -> None:
        word.set("first")
        submit(Do(third, "third"))

    async def second() -> str:
        return word.get()

    async def third() -> str:
        return word.get()

    commander = Commander()
    await commander.run(Do(first), Do(second))
    assert commander.children[1].result == "none"
    assert commander.children[0].children[0].result == "first"
