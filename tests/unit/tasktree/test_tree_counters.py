"""Ordinals that go from one run to the next."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.unit.tasktree.bodies import Do, nothing, steps

from casework.tasktree import Commander, NotAtRestError, OptionError, call, current_node, handler, submit


@handler
async def exchange(rest: asyncio.Event | None = None) -> None:
    """Ends, or rests until it is let go."""
    if rest is not None:
        call(nothing())
        await rest.wait()


async def first_run(keep: Any) -> dict[str, dict[str, int]]:
    """A visit with two exchanges that ended and one at rest, beside a visit that ended; then the counters."""
    rest = asyncio.Event()

    async def visit() -> Any:
        for _ in range(2):
            await call(exchange())
        return exchange(rest)

    async def resting() -> Any:
        call(exchange(rest))
        await call(exchange())

    async with Commander(keep=keep) as commander:
        await submit(Do(_nothing, "underwrite"))
        submit(Do(visit, "decide"))
        submit(Do(resting, "underwrite"))
        await steps()
        exported = commander.export_counters()
        rest.set()
    return exported


async def _nothing() -> None:
    return None


@pytest.mark.parametrize("keep", ["all", "failed", "none"])
async def test_what_is_exported(keep: Any) -> None:
    """TT-27. Plain data: the Commander's counters, and those of every open node; also where the ended were released."""
    exported = await first_run(keep)
    assert exported == {
        "": {"decide": 1, "underwrite": 2},
        "decide.1": {"exchange": 2, "nothing": 1},
        "underwrite.2": {"exchange": 2},
        "underwrite.2/exchange.1": {"nothing": 1},
    }
    assert json.loads(json.dumps(exported)) == exported


async def test_a_successor_goes_on_counting_and_reopens_what_was_open() -> None:
    """TT-27. No path is given twice; a node at rest has its own path again, and its descendants' counters with it."""
    exported = await first_run("none")
    told: list[str] = []

    async def again() -> None:
        told.append(call(exchange()).path)
        told.append(call(exchange().reopen(1)).path)
        told.append(call(nothing(), current_node().children[-1]).path)

    async with Commander(counters=exported) as successor:
        told.append(submit(Do(_nothing, "underwrite")).path)
        node = submit(Do(again, "underwrite").reopen(2))
        told.append(node.path)
        await node
        told.append(submit(Do(_nothing, "underwrite")).path)
        left = successor.export_counters()
    assert told == [
        "underwrite.3",
        "underwrite.2",
        "underwrite.2/exchange.3",
        "underwrite.2/exchange.1",
        "underwrite.2/exchange.1/nothing.2",
        "underwrite.4",
    ]
    assert left == {"": {"decide": 1, "underwrite": 4}, "decide.1": {"exchange": 2, "nothing": 1}, "underwrite.4": {}}


@pytest.mark.parametrize(
    "reopen",
    [
        lambda: submit(Do(_nothing, "underwrite").reopen(1)),  # had ended
        lambda: submit(Do(_nothing, "never").reopen(1)),
        lambda: call(exchange().reopen(1)),  # another parent
    ],
)
async def test_only_what_was_at_rest_is_reopened(reopen: Callable[[], Awaitable[Any]]) -> None:
    """TT-20, TT-27. By name; and once."""
    async with Commander(counters=await first_run("all")) as successor:
        with pytest.raises(NotAtRestError, match="cannot be re-opened"):
            reopen()
        await submit(Do(_nothing, "decide").reopen(1))
        with pytest.raises(NotAtRestError):
            submit(Do(_nothing, "decide").reopen(1))
        assert [node.path for node in successor.children] == ["decide.1"]


async def test_a_refused_node_can_be_used_elsewhere() -> None:
    """TT-20, TT-27. Nothing of it was attached."""
    async with Commander() as commander:
        job = Do(_nothing, "a").isolate().reopen(7)
        with pytest.raises(NotAtRestError):
            submit(job)
        assert commander.children == ()
        assert commander.export_counters() == {"": {}}


@pytest.mark.parametrize(
    "bad",
    ["text", 7, {"a.1": 3}, {3: {}}, {"": {"a": "1"}}, {"": {"a": 0}}, {"": {"a": True}}, {"": {3: 1}}, [("", {})]],
)
def test_counters_must_be_what_was_exported(bad: Any) -> None:
    """TT-20, TT-27."""
    with pytest.raises(OptionError, match="counters"):
        Commander(counters=bad)


@pytest.mark.parametrize("bad", [0, -3, 1.0, "1", None, True])
def test_an_ordinal_is_a_whole_number(bad: Any) -> None:
    """TT-20, TT-27."""
    with pytest.raises(OptionError, match="ordinal"):
        nothing().reopen(bad)


async def test_a_second_run_of_the_same_commander_goes_on_too() -> None:
    """TT-9, TT-27. Its ordinals stay, and the counters that it was given."""
    commander = Commander(counters=await first_run("all"))
    await commander.run(Do(_nothing, "decide"))
    await commander.run(Do(_nothing, "decide"))
    assert commander.export_counters()[""] == {"decide": 3, "underwrite": 2}
