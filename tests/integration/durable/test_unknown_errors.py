"""Errors in the run's own code that nobody foresaw: the run ends FAILED, at once, and says what it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from casework.agents import tool
from casework.app import App
from casework.graph import engine
from tests.integration.durable.apps import GATED, gated
from tests.integration.durable.conftest import House


async def workflow_tasks_failed(house: House, run_id: UUID) -> bool:
    history = await house.client.get_workflow_handle(str(run_id)).fetch_history()
    return any(event.HasField("workflow_task_failed_event_attributes") for event in history.events)


async def test_an_expression_that_fails_in_a_run(house: House, tmp_path: Path) -> None:
    """DA-19. What a tool returned is not what the expression compares: FAILED, naming node and expression."""

    @tool(effects=False)
    def weigh(weight: int) -> dict[str, Any]:
        """Weigh it."""
        return {"grams": ["not", "a", "number"], "weight": weight}

    manifest = tmp_path / "gated.yaml"
    manifest.write_text(GATED)
    async with house.with_app(App(tools=[weigh], manifests=(manifest,))) as busy:
        run_id = await busy.start({"weight": 5}, "gated")
        row = await busy.reaches(run_id, "FAILED")
    assert "heavy" in str(row.failure)
    assert not await workflow_tasks_failed(house, run_id)


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError("no")


class Odd(BaseException):
    pass


def around(error: Exception) -> Exception:
    made = RuntimeError("around it")
    made.__cause__ = error
    error.__cause__ = made
    return made


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: KeyError("a bug"), "KeyError: 'a bug'"),
        (lambda: ExceptionGroup("g", [ValueError("one"), KeyError("two")]), "one; 'two'"),
        (lambda: BaseExceptionGroup("g", [Odd("one"), ValueError("two")]), "one; two"),
        (lambda: Odd("beyond"), "Odd: beyond"),
        (Unreadable, "its text cannot be read"),
        (lambda: ValueError("x" * 10_000_000), "(10,000,000 characters)"),
        (lambda: ValueError("a\x00b\ud800"), "a\u2400b\ufffd"),
        (lambda: around(ValueError("in a circle")), "around it"),
    ],
    ids=["bug", "group", "base group", "base exception", "unreadable", "10 MB", "NUL and a half character", "circle"],
)
async def test_an_unknown_error_in_workflow_code(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], BaseException], told: str
) -> None:
    """DA-19. Whatever kind of error, whatever its text: no endless retry of the workflow task, and its words stay."""

    def fails(*_: Any) -> Any:
        raise make()

    async with house.with_app(gated(tmp_path)) as busy:
        monkeypatch.setattr(engine, "evaluate", fails)
        run_id = await busy.start({"weight": 5}, "gated")
        row = await busy.reaches(run_id, "FAILED", deadline_s=60)
        assert told in str(row.failure)
        assert len(str(row.failure)) < 5_000
        assert not await workflow_tasks_failed(busy, run_id)
