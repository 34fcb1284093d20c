"""The tree as a picture of time: SVG and Mermaid (TT-21)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from casework.tasktree import (
    Commander,
    Job,
    NodeFailedError,
    call,
    handler,
    mermaid_timeline,
    submit,
    svg_timeline,
)
from casework.tasktree.picture import ticks

from .bodies import Do, do, fails, for_ever, nothing
from .judged import ManualClock

SVG = "{http://www.w3.org/2000/svg}"
DRAWERS = [svg_timeline, mermaid_timeline]
Drawer = Callable[..., str]


def labels(svg: str) -> list[str]:
    """The names in a picture, in order, with the mark of their state."""
    groups = ElementTree.fromstring(svg).iter(f"{SVG}g")
    return [str(text.text) for group in groups if (text := group.find(f"{SVG}text")) is not None]


def bars(svg: str) -> list[tuple[float, float]]:
    """Where each bar begins, and how long it is."""
    found = [group.find(f"{SVG}rect") for group in ElementTree.fromstring(svg).iter(f"{SVG}g")]
    return [(float(bar.get("x", "")), float(bar.get("width", ""))) for bar in found if bar is not None]


def tooltips(svg: str) -> list[str]:
    return [str(group.findtext(f"{SVG}title")) for group in ElementTree.fromstring(svg).iter(f"{SVG}g")]


async def two_steps() -> Commander:
    """Two handlers of one and three seconds, one after the other."""
    clock = ManualClock()

    async def body() -> None:
        for seconds in (1, 3):

            async def step(length: float = seconds) -> None:
                clock.advance(length)

            await call(do(step).named("step"))

    commander = Commander(clock=clock)
    await commander.run(Do(body, "top"))
    return commander


def wide(count: int, name: str = "nothing") -> Commander:
    """One Job with many handlers below it."""

    class Wide(Job):
        async def task(self) -> None:
            for _ in range(count):
                call(nothing().named(name))

    commander = Commander()
    commander.run_sync(Wide())
    return commander


async def test_a_picture_has_a_bar_for_each_node() -> None:
    """TT-21. Names in the order of the tree, bars from begin to end to one scale, and how long each took."""
    svg = svg_timeline(await two_steps())
    assert labels(svg) == ["✓ Commander", "✓ top.1", "✓ step.1", "✓ step.2"]
    (x, whole), _, (first_x, first), (second_x, second) = bars(svg)
    assert first_x == x
    assert first * 4 == pytest.approx(second_x * 4 - x * 4) == pytest.approx(whole)
    assert second == pytest.approx(whole * 3 / 4)
    assert "4.000 s" in svg
    assert tooltips(svg)[3] == "step.2 COMPLETED 3.000 s, from 1.000 s"


async def test_the_same_tree_as_mermaid() -> None:
    """TT-21. A section for each child of the top; times count from nought."""
    assert mermaid_timeline(await two_steps()).splitlines() == [
        "gantt",
        "    title Commander",
        "    dateFormat YYYY-MM-DD HH:mm:ss.SSS",
        "    axisFormat %M:%S.%L",
        "    todayMarker off",
        "    · Commander (4.000 s) :done, n0, 2000-01-01 00:00:00.000, 2000-01-01 00:00:04.000",
        "    section top.1",
        "    ·· top.1 (4.000 s) :done, n1, 2000-01-01 00:00:00.000, 2000-01-01 00:00:04.000",
        "    ··· step.1 (1.000 s) :done, n2, 2000-01-01 00:00:00.000, 2000-01-01 00:00:01.000",
        "    ··· step.2 (3.000 s) :done, n3, 2000-01-01 00:00:01.000, 2000-01-01 00:00:04.000",
    ]


@pytest.mark.parametrize("draw", DRAWERS)
async def test_a_tree_is_drawn_from_its_data_alone(draw: Drawer) -> None:
    """TT-21. A snapshot that was kept is drawn as its tree was."""
    commander = await two_steps()
    assert draw(commander.snapshot()) == draw(commander)


async def test_states_are_told_apart() -> None:
    """TT-21. By colour, by border and by a mark; the legend names those that occur; errors are in the tooltip."""

    async def body() -> None:
        call(fails(ValueError("no such <applicant>")).named("check"))
        call(for_ever())

    commander = Commander()
    with pytest.raises(NodeFailedError):
        await commander.run(Do(body, "top"))
    svg = svg_timeline(commander)
    assert labels(svg) == ["✗ Commander", "✗ top.1", "✗ check.1", "■ for_ever.1"]
    assert tooltips(svg)[2].endswith("\nValueError: no such <applicant>")
    assert all(f"{word}</text>" in svg for word in ("EXCEPTION", "TERMINATED"))
    assert "COMPLETED</text>" not in svg
    assert ":crit, n2" in mermaid_timeline(commander)


async def test_a_running_tree_is_drawn_up_to_now() -> None:
    """TT-21. What runs ends now; what has not begun has no bar."""
    clock = ManualClock()

    async def body() -> None:
        submit(Do(body, "queued"))
        clock.advance(2)
        commander.exit((svg_timeline(commander), mermaid_timeline(commander)))

    commander = Commander(clock=clock)
    svg, mermaid = await commander.run(Do(body, "top"))
    assert labels(svg) == ["… Commander", "… top.1", "… queued.1"]
    assert len(bars(svg)) == 2
    assert svg.count("2.000 s so far</text>") == 2
    assert ":active, n1" in mermaid


def test_a_wide_tree_is_folded() -> None:
    """TT-21. At most `limit` nodes; a line says how many are left out below which node, and how they ended."""
    commander = wide(1000)
    svg = svg_timeline(commander, limit=12)
    assert len(labels(svg)) == 13
    assert labels(svg)[-1].split() == ["...", "990", "more"]
    assert "990 COMPLETED</text>" in svg
    assert "... 990 more (990 COMPLETED) :n12" in mermaid_timeline(commander, limit=12)
    assert len(labels(svg_timeline(commander))) == 201
    assert len(svg_timeline(commander)) < 100_000


def test_a_deep_tree_is_folded() -> None:
    """TT-21, TT-25. Without recursion, and no wider than another."""

    class Chain(Job):
        def __init__(self, left: int) -> None:
            self.left = left

        async def task(self) -> None:
            if self.left:
                submit(Chain(self.left - 1))

    commander = Commander()
    commander.run_sync(Chain(20_000))
    svg = svg_timeline(commander, limit=20)
    assert labels(svg)[-2:] == ["✓ (level 19) Chain.1", "  ... 19,982 more"]
    assert int(ElementTree.fromstring(svg).get("width", "")) < 1300
    assert len(mermaid_timeline(commander).splitlines()) == 107


async def test_folding_spares_what_matters() -> None:
    """TT-21. A node that failed is drawn, wherever it stands, with all that are above it."""

    async def deeper() -> None:
        for _ in range(50):
            call(nothing())
        await call(fails(ValueError("x")).named("culprit"))

    async def body() -> None:
        for _ in range(50):
            call(nothing())
        call(do(deeper))

    commander = Commander()
    with pytest.raises(NodeFailedError):
        await commander.run(Do(body, "top"))
    assert labels(svg_timeline(commander, limit=5)) == [
        "✗ Commander",
        "✗ top.1",
        "✓ nothing.1",
        "✗ do.1",
        "✗ culprit.1",
        "  ... 50 more",
        "  ... 49 more",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "<script>&amp;\"'",
        "two\nlines\r\t",
        "nul\x00 and \ud800 and \u202e",
        "検査" * 5000,
        "x" * 10_000,
        "a:b;c#d%%e,f",
    ],
)
def test_any_name_can_be_drawn(name: str) -> None:
    """TT-21. The picture stays XML, one line a node, and no wider; the text stays a chart."""
    commander = wide(3, name)
    svg = svg_timeline(commander)
    assert len(labels(svg)) == 5
    assert all(label.endswith((".1", ".2", ".3")) for label in labels(svg)[1:])
    assert all("\n" not in label and len(label) < 60 for label in labels(svg))
    assert int(ElementTree.fromstring(svg).get("width", "")) < 1300
    svg.encode("utf-8")
    lines = mermaid_timeline(commander).splitlines()
    assert len(lines) == 5 + 5 + 1
    assert all(re.fullmatch(r" {4}·+ [^:;#<>%]+ :done, n\d, [-\d:. ]+, [-\d:. ]+", line) for line in lines[7:])
    assert max(map(len, lines)) < 200


@pytest.mark.parametrize(
    "name", ["title", "section", "gantt", "click x", "dateFormat", "vert", "%%", "---", "accTitle"]
)
def test_no_name_is_a_word_of_mermaid(name: str) -> None:
    """TT-21. Marks of the level stand before each name."""
    lines = mermaid_timeline(wide(1, name)).splitlines()
    assert lines[-1].startswith("    ··· ")


@pytest.mark.parametrize("draw", DRAWERS)
def test_what_never_ran_is_drawn(draw: Drawer) -> None:
    """TT-21. A tree without any time has lines and no bars; no node at all is no fault either."""
    assert "Do" in draw(Do(nothing))
    assert draw([])
    with pytest.raises(ValueError, match="limit=0"):
        draw(Do(nothing), limit=0)


def test_a_picture_says_what_it_is() -> None:
    """TT-21. Title and description for those who do not see it; nothing that another picture on the page disturbs."""
    svg = svg_timeline(wide(2))
    root = ElementTree.fromstring(svg)
    assert (root.get("role"), root.get("aria-label")) == ("img", "Timeline of Commander")
    assert root.findtext(f"{SVG}title") == "Timeline of Commander"
    assert "4 COMPLETED" in str(root.findtext(f"{SVG}desc"))
    assert not re.search(r"\bid=|<style|<script|href", svg)


@pytest.mark.parametrize("whole", [1e-9, 0.004, 0.9, 1.0, 59.0, 301.0, 7_300.0, 90_000.0, 1e7, 1e12])
def test_the_scale_has_some_round_figures(whole: float) -> None:
    """TT-21. From nought on, evenly, in a unit that suits."""
    marks = ticks(whole)
    assert 3 <= len(marks) <= 14
    assert marks[0][0] == 0
    assert marks[-1][0] <= whole * 1.0001
    assert len({words for _, words in marks}) == len(marks)


@pytest.mark.parametrize("whole", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_of_nothing(whole: float) -> None:
    """TT-21. No length, or none that can be drawn, has one mark."""
    assert ticks(whole) == [(0.0, "0 s")]


@handler
async def pause() -> None:
    await asyncio.sleep(0.001)


async def test_bars_lie_within_their_parents() -> None:
    """TT-4, TT-21. By the real clock, too: no node ends after its parent, or begins before it."""

    class Top(Job):
        async def task(self) -> Any:
            for _ in range(3):
                call(pause())

    commander = Commander()
    await commander.run(Top())
    entries = commander.snapshot()
    for entry in entries[1:]:
        parent = entries[entry["parent"]]
        assert parent["began"] <= entry["began"] <= entry["ended"] <= parent["ended"]


def test_the_picture_names_fonts_that_some_system_has() -> None:
    """TT-21. Widths are those of a fixed pitch, so each system gets one of its own; the general word comes last."""
    fonts = str(ElementTree.fromstring(svg_timeline([])).get("font-family")).split(", ")
    assert len(fonts) > 2
    assert fonts[-1] == "monospace"
