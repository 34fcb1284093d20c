"""The tree as plain data and as text (TT-21)."""

import asyncio
import json

import pytest

from casework.tasktree import Commander, Job, NodeFailedError, Stage, call, handler, submit
from casework.tasktree.drawing import INDENT_LIMIT, TEXT_LIMIT, duration_text

from .bodies import Do, do, fails, for_ever, nothing, steps
from .judged import ManualClock


async def _failing_tree() -> Commander:
    """The Commander begins at 0 s, the check fails at 1.5 s."""
    clock = ManualClock()

    async def child() -> None:
        call(fails(ValueError("first line\nsecond line")).named("a check"))
        call(for_ever())
        clock.advance(0.25)

    async def body() -> None:
        clock.advance(1.25)
        call(do(child))

    commander = Commander(clock=clock)
    with pytest.raises(NodeFailedError):
        await commander.run(Do(body, "top"))
    return commander


async def test_a_tree_is_drawn_as_text() -> None:
    """TT-21. A line for each node, indented, with its state, how long it took, and the first line of its error."""
    assert (await _failing_tree()).render().splitlines() == [
        "Commander EXCEPTION 1.500 s NodeFailedError: node 'top.1/do.1/a%20check.1' failed: ValueError: first line",
        "  top.1 EXCEPTION 1.500 s NodeFailedError: node 'top.1/do.1/a%20check.1' failed: ValueError: first line",
        "    do.1 EXCEPTION 0.250 s NodeFailedError: node 'top.1/do.1/a%20check.1' failed: ValueError: first line",
        "      a%20check.1 EXCEPTION 0.000 s ValueError: first line",
        "      for_ever.1 TERMINATED 0.000 s",
    ]


async def test_a_tree_as_plain_data() -> None:
    """TT-21. JSON takes it; each entry points to its parent's place in the list, and says when it began and ended."""
    entries = json.loads(json.dumps((await _failing_tree()).snapshot()))
    assert [(entry["step"], entry["parent"], entry["state"], entry["began"], entry["ended"]) for entry in entries] == [
        ("", None, "EXCEPTION", 0, 1.5),
        ("top.1", 0, "EXCEPTION", 0, 1.5),
        ("do.1", 1, "EXCEPTION", 1.25, 1.5),
        ("a%20check.1", 2, "EXCEPTION", 1.5, 1.5),
        ("for_ever.1", 2, "TERMINATED", 1.5, 1.5),
    ]
    assert entries[3]["error"] == "ValueError: first line\nsecond line"
    assert entries[3]["kind"] == "HandlerNode"


async def test_a_tree_is_drawn_while_it_grows() -> None:
    """TT-21. What runs says for how long it has, what waits says for what; a node in no tree has no time."""
    clock = ManualClock()

    async def body() -> None:
        call(for_ever())
        submit(Do(body, "second"))
        clock.advance(61.04)
        commander.exit((commander.render(), commander.snapshot()))

    commander = Commander(clock=clock)
    text, entries = await commander.run(Do(body, "first"))
    assert text.splitlines() == [
        "Commander ACTIVE 1 min 01.0 s so far",
        "  first.1 ACTIVE 1 min 01.0 s so far",
        "    for_ever.1 ACTIVE waits for its turn",
        "    second.1 ACTIVE waits for its turn",
    ]
    assert [(entry["began"], entry["ended"]) for entry in entries] == [(0, None), (0, None), (None, None), (None, None)]
    assert Do(body).render() == "Do PENDING"


async def test_a_dropped_job_has_no_time() -> None:
    """TT-21. It ended, but it never began."""

    async def body() -> None:
        submit(Do(body, "dropped"))
        commander.exit()

    commander = Commander(clock=ManualClock())
    await commander.run(Do(body, "top"))
    assert commander.render().splitlines()[-1] == "    dropped.1 TERMINATED"
    assert commander.snapshot()[-1]["began"] is None


async def test_notes_stand_below_their_node() -> None:
    """TT-21. What went wrong without ending a node is seen, too."""

    def breaks() -> None:
        raise ValueError("one\ntwo")

    async def body() -> None:
        call(nothing().on(Stage.AT_HANDLER_END, breaks))

    commander = Commander(clock=ManualClock(), on_callback_error=lambda *_: None)
    await commander.run(Do(body, "top"))
    assert commander.render().splitlines() == [
        "Commander COMPLETED 0.000 s",
        "  top.1 COMPLETED 0.000 s",
        "    nothing.1 COMPLETED 0.000 s",
        "      ! at_handler_end callback failed: ValueError: one",
    ]


async def test_what_cannot_be_shown_is_not_in_the_way() -> None:
    """TT-18, TT-21. A name of any length; an error that cannot say what it is fails its node like any other."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    async def body() -> None:
        call(fails(Mute()).named("ü" * 10_000))

    commander = Commander()
    with pytest.raises(NodeFailedError):
        await commander.run(Do(body, "top"))
    assert max(map(len, commander.render().splitlines())) < 3 * TEXT_LIMIT
    assert commander.snapshot()[-1]["name"] == "ü" * 10_000
    assert "Mute: (says nothing" in commander.render()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0.000 s"),
        (0.0004, "0.000 s"),
        (1.2041, "1.204 s"),
        (59.9994, "59.999 s"),
        (59.9996, "1 min 00.0 s"),
        (123.45, "2 min 03.4 s"),
        (3599.96, "1 h 00 min"),
        (86_369, "23 h 59 min"),
        (86_399, "1 d 00 h"),
        (1e8, "1,157 d 10 h"),
    ],
)
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    """TT-21. Never `60 s`, never `24 h`."""
    assert duration_text(seconds) == text


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
    assert text.splitlines()[-1].strip().startswith("(level 10001) Chain.1 COMPLETED 0.")
    assert len(text) < 10_002 * (2 * INDENT_LIMIT + 50)
    assert json.loads(json.dumps(commander.snapshot()))[-1]["parent"] == 10_000


@handler
async def _unused() -> None: ...


def test_a_node_without_a_place_is_drawn() -> None:
    """TT-21. It has neither a step nor times."""
    [entry] = _unused().snapshot()
    assert (entry["step"], entry["began"], entry["ended"]) == ("", None, None)


async def test_a_wait_for_a_limit_is_seen() -> None:
    """TT-12, TT-21. A handler that waits for a slot says so while it waits, and no longer."""
    gate = asyncio.Event()
    waits = do(gate.wait)

    async def body() -> str:
        call(waits)
        call(nothing())
        await steps()
        seen = commander.render()
        gate.set()
        return seen

    commander = Commander(clock=ManualClock(), max_handlers=1)
    assert (await commander.run(Do(body, "top"))).splitlines() == [
        "Commander ACTIVE 0.000 s so far",
        "  top.1 ACTIVE 0.000 s so far",
        "    do.1 ACTIVE 0.000 s so far",
        "    nothing.1 ACTIVE waits for a handler slot",
    ]
    assert "waits" not in commander.render()


async def test_an_error_cannot_write_lines_of_its_own_on_a_terminal() -> None:
    """TT-21. What moves a cursor or turns the direction of writing is not shown as it is."""
    commander = Commander(isolate=True)
    await commander.run(Do(lambda: _raise(ValueError("a\x1b[2K\rCommander COMPLETED \u202egnp"))))
    assert commander.render().isprintable() or "\n" in commander.render()
    assert not any(each in commander.render() for each in "\x1b\r\u202e")


async def _raise(error: Exception) -> None:
    raise error
