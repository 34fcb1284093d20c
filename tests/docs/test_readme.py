"""The README: what its reader sees first, and its project, really run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from casework import load_app
from tests.docs.pages import ROOT, blocks, write_files
from tests.integration.durable.conftest import House
from tests.integration.durable.conftest import house as house  # noqa: PLC0414  # a fixture is found by its name here
from tests.integration.durable.conftest import loan_dsn as loan_dsn  # noqa: PLC0414  # as above

README = ROOT / "README.md"
PROJECT = [block for block in blocks(README) if block.title]


def test_a_command_comes_first() -> None:
    """Code by line 15; both commands and the line for a bare machine on the first screen."""
    found = [block for block in blocks(README) if block.language == "sh"]
    assert found[0].line <= 15
    screen = "\n".join(README.read_text().splitlines()[:25])
    assert all(
        line in screen for line in ("make demo", "make test", "apt-get install -y python3 python3-venv make git")
    )


def test_the_project_is_small() -> None:
    """App, tool and manifest in under 40 lines."""
    lines = [line for block in PROJECT for line in block.text.splitlines() if line.strip()]
    assert len(lines) < 40


async def test_the_project_runs(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's App loads, its workflow is admitted, and a run of it is decided by a person."""
    write_files(README, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    app = load_app("desk:app", folder=tmp_path)
    assert set(app.workflows()) == {"refund"}
    async with house.with_app(app) as desk:
        run_id = await desk.start({"order_id": "A-7"}, "refund")
        waiting = await desk.reaches(run_id, "AWAITING_REVIEW")
        assert "arrived broken" in str(waiting.recommendation)
        await desk.decide(run_id, "approve", "Broken on arrival.")
        assert (await desk.reaches(run_id, "COMPLETED")).outcome == "refunded"
