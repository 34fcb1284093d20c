"""Visits that only compute, of CONDITION nodes and of inline tools: they end as all others do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.local.conftest import house, pinned, workflow

from casework.agents.toolbox import Toolbox
from casework.agents.tools import Tool, ToolContext, tool
from casework.errors import FatalError, RetryableError, ToldError
from casework.local.house import LocalEnd
from casework.local.run import run_local
from casework.tasktree import Job, NodeFailedError, submit

LOOP: list[dict[str, Any]] = [
    {"from": "t", "to": "c"},
    {"from": "c", "to": "t", "condition": "true"},
    {"from": "c", "to": "end", "condition": "false"},
    {"from": "t", "to": "rest", "onError": True},
]
NODES: list[dict[str, Any]] = [
    {"id": "t", "type": "TOOL", "arguments": {"n": "{{ input.n }}"}, "outputKey": "sum"},
    {"id": "c", "type": "CONDITION", "expression": "size(errors) > 0 || sum < 3"},
    {"id": "rest", "type": "WAIT", "duration": 0},
]


def named(function: Callable[..., Any], *, inline: bool) -> Tool:
    return tool(effects=False, inline=inline, name="made")(function)


async def walked(made: Tool, n: Any = 1) -> LocalEnd:
    """The end of a loop that calls the tool until it gives three."""
    nodes = [{**NODES[0], "tool": made.name}, *NODES[1:]]
    bundle = pinned(workflow("w", nodes, LOOP), tools=[made])
    return await run_local(replace(house(), tools=Toolbox([made])), bundle, {"n": n})


def drawn(end: LocalEnd) -> str:
    """Its tree, without the times."""
    return re.sub(r"[0-9.]+ s", "", end.drawing)


def counts(ctx: ToolContext, n: int) -> int:
    """One more than it gave the last time."""
    assert ctx.path.startswith("t.")
    return int(ctx.evidence.get("made", 0)) + n


def refuses(n: int) -> int:
    """Says no."""
    raise ToldError(f"{n} is too few")


def is_busy(n: int) -> int:
    """Trouble that would pass."""
    raise RetryableError(f"line {n} is busy")


def breaks(n: int) -> int:
    """A fault of its own."""
    return n // 0


def is_fatal(n: int) -> int:
    """Nothing that can go on."""
    raise FatalError(f"account {n} is closed")


@pytest.mark.parametrize("n", [1, "one"])
@pytest.mark.parametrize("function", [counts, refuses, is_busy, breaks, is_fatal])
async def test_a_tool_ends_its_visit_alike_whether_it_is_inline_or_not(function: Callable[..., Any], n: Any) -> None:
    """AW-8, AW-9. Results, refusals, faults and wrong arguments, with the same paths and the same texts."""
    quick, usual = await walked(named(function, inline=True), n), await walked(named(function, inline=False), n)
    assert quick == usual
    assert drawn(quick) == drawn(usual)
    assert "t.1" in drawn(quick)


async def test_what_is_below_a_quick_visit_ends_before_the_next_begins() -> None:
    """AW-9. Its tool can give work to the tree; the next visit begins when that is done."""
    order: list[str] = []

    class Below(Job):
        async def task(self) -> None:
            order.append(f"below {self.path}")

    def gives(ctx: ToolContext, n: int) -> int:
        """Submits a Job."""
        submit(Below())
        order.append(ctx.path)
        return 3 * n if ctx.evidence else n

    end = await walked(named(gives, inline=True))
    assert (end.status, end.output) == ("COMPLETED", 3)
    assert order == ["t.1", "below t.1/Below.1", "t.2", "below t.2/Below.1"]


async def test_a_quick_visit_is_spoilt_by_what_fails_below_it() -> None:
    class Below(Job):
        async def task(self) -> None:
            raise ValueError("no good")

    def gives(n: int) -> int:
        """Submits a Job that fails."""
        submit(Below())
        return n

    with pytest.raises(NodeFailedError, match=r"t\.1/Below\.1"):
        await walked(named(gives, inline=True))
