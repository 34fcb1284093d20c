"""Where in a user's code a free tree failed, and what is said of what the engine refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from temporalio.worker.workflow_sandbox import RestrictedWorkflowAccessError

from casework.durable.workflows import tree_faults
from casework.errors import ToldError
from casework.examples.group_talk.talk import GroupTalkManager
from casework.tasktree import Commander, Job, NodeFailedError, call, handler
from casework.values import bounded

HERE = Path(__file__).name


def line(words: str) -> int:
    """The first line of this file that holds `words`."""
    return next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if words in text)


def caught(function: Callable[[], object]) -> Exception:
    try:
        function()
    except Exception as error:  # noqa: BLE001  # what is looked at
        return error
    raise AssertionError("it did not fail")


def divides() -> float:
    return 1 / 0


def in_the_library() -> object:
    return json.loads("{")


def in_our_code() -> object:
    return bounded(object(), "it")


def with_a_cause() -> None:
    try:
        divides()
    except ZeroDivisionError as error:
        raise LookupError("no price") from error


def in_a_group() -> None:
    raise ExceptionGroup("several", [caught(divides)])


@pytest.mark.parametrize(
    ("function", "place"),
    [
        (divides, ("return 1 / 0", "divides")),
        (in_the_library, ("json.loads(", "in_the_library")),
        (in_our_code, ("bounded(object()", "in_our_code")),
        (with_a_cause, ("return 1 / 0", "divides")),
        (in_a_group, ("return 1 / 0", "divides")),
    ],
)
def test_the_place_is_the_innermost_of_the_users_code(function: Callable[[], object], place: tuple[str, str]) -> None:
    """TT-18. Not that of a library, nor of Casework; of causes the first, which is the one that is told."""
    words, name = place
    assert tree_faults.place_of(caught(function)) == f"{HERE}:{line(words)} in {name}"


def test_examples_are_users_code_and_an_error_without_frames_has_no_place() -> None:
    """TT-18. Who copies an example finds the line too."""
    place = tree_faults.place_of(caught(lambda: GroupTalkManager(None, "Hello", rounds=-1)))  # type: ignore[arg-type]  # not reached
    assert str(place).startswith("talk.py:")
    assert tree_faults.told(ToldError("no")) == "no"


class Asks(Job):
    async def task(self) -> None:
        await call(deeper())


@handler
async def deeper() -> None:
    await asyncio.sleep(0)
    divides()


async def test_a_failed_tree_is_told_with_path_error_and_line() -> None:
    """TT-18. In that order."""
    with pytest.raises(NodeFailedError) as failed:
        await Commander().run(Asks())
    place = f"({HERE}:{line('return 1 / 0')} in divides)"
    assert tree_faults.told(failed.value) == f"Asks.1/deeper.1: ZeroDivisionError: division by zero {place}"


def refused() -> None:
    raise RestrictedWorkflowAccessError("time.time.__call__")


def bare() -> None:
    asyncio.AbstractEventLoop.run_in_executor(None, None, divides)  # type: ignore[arg-type]  # what a durable loop does


def unwritten() -> None:
    raise NotImplementedError


def test_what_is_refused_is_told_with_what_to_do() -> None:
    """DA-19. Not with advice that is for authors of workflows; a NotImplementedError of the user's stays what it is."""
    told = tree_faults.told(caught(refused))
    assert told.startswith(
        "RestrictedWorkflowAccessError: time.time.__call__ is refused in the code of a free tree. Use a"
    )
    assert "mark the import" not in told
    assert "asyncio's run_in_executor (a thread, a process or a connection) is refused" in tree_faults.told(
        caught(bare)
    )
    assert "refused" not in tree_faults.told(caught(unwritten))
