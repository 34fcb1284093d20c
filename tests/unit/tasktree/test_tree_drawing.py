"""The tree as plain data and as text (TT-21)."""

import json

import pytest

from casework.tasktree import Commander, Job, NodeFailedError, call, handler, submit
from casework.tasktree.drawing import INDENT_LIMIT

from .bodies import Do, do, fails, for_ever


async def _failing_tree() -> Commander:
    async def child() -> None:
        call(fails(ValueError("first line\nsecond line")).named("credit check"))
        call(for_ever())

    async def body() -> None:
        call(do(child))

    commander = Commander()
    with pytest.raises(NodeFailedError):
        await commander.run(Do(body, "top"))
    return commander


async def test_a_tree_is_drawn_as_text() -> None:
    """TT-21. A line for each node, indented, with its state and the first line of its error."""
    assert (await _failing_tree()).render().splitlines() == [
        "Commander EXCEPTION NodeFailedError: node 'top.1/do.1/credit%20check.1' failed: ValueError: first line",
        "  top.1 EXCEPTION NodeFailedError: node 'top.1/do.1/credit%20check.1' failed: ValueError: first line",
        "    do.1 EXCEPTION NodeFailedError: node 'top.1/do.1/credit%20check.1' failed: ValueError: first line",
        "      credit%20check.1 EXCEPTION ValueError: first line",
        "      for_ever.1 TERMINATED",
    ]


async def test_a_tree_as_plain_data() -> None:
    """TT-21. JSON takes it; each entry points to its parent's place in the list."""
    entries = json.loads(json.dumps((await _failing_tree()).snapshot()))
    assert [(entry["step"], entry["parent"], entry["state"]) for entry in entries] == [
        ("", None, "EXCEPTION"),
        ("top.1", 0, "EXCEPTION"),
        ("do.1", 1, "EXCEPTION"),
        ("credit%20check.1", 2, "EXCEPTION"),
        ("for_ever.1", 2, "TERMINATED"),
    ]
    assert entries[3]["error"] == "ValueError: first line\nsecond line"
    assert entries[3]["kind"] == "HandlerNode"


async def test_a_tree_is_drawn_while_it_grows() -> None:
    async def body() -> str:
        call(for_ever())
        commander.exit(commander.render())
        return ""

    commander = Commander()
    assert await commander.run(Do(body)) == "Commander ACTIVE\n  Do.1 ACTIVE\n    for_ever.1 ACTIVE"
    assert Do(body).render() == "Do PENDING"


def test_a_deep_tree_is_drawn_small() -> None:
    """TT-25. Neither by recursion nor by blanks."""

    class Chain(Job):
        def __init__(self, left: int) -> None:
            self.left = left

        async def task(self) -> None:
            if self.left:
                submit(Chain(self.left - 1))

    commander = Commander()
    commander.run_sync(Chain(10_000))
    text = commander.render()
    assert text.splitlines()[-1].strip() == "(level 10001) Chain.1 COMPLETED"
    assert len(text) < 10_002 * (2 * INDENT_LIMIT + 40)
    assert json.loads(json.dumps(commander.snapshot()))[-1]["parent"] == 10_000


@handler
async def _unused() -> None: ...


def test_a_node_without_a_place_is_drawn() -> None:
    assert _unused().snapshot()[0]["step"] == ""
