"""What `casework drill` plays, as its options say."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from casework.app import load_app
from casework.cli.drill import SAMPLE, _named, drill
from casework.drills.scenarios import wanted
from casework.examples.loan_underwriting import app as loan


def test_kills_without_an_application_take_the_shipped_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """DA-26. Only where nothing names another: the option, the environment, the file in the folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CASEWORK_APP", raising=False)
    assert _named(None) == SAMPLE
    assert load_app(SAMPLE).rehearsal is not None
    assert _named("shop:app") == "shop:app"
    monkeypatch.setenv("CASEWORK_APP", "shop:app")
    assert _named(None) is None
    monkeypatch.delenv("CASEWORK_APP")
    (tmp_path / "casework.toml").write_text('app = "shop:app"\n', encoding="utf-8")
    assert _named(None) is None


def test_kills_are_no_scenario() -> None:
    """Both together would leave one of them out in silence."""
    done = CliRunner().invoke(drill, ["--kills", "3", "--only", "recovery"], standalone_mode=True)
    assert done.exit_code == 2
    assert "exclude each other" in done.output


def test_scenarios_are_played_in_their_order() -> None:
    """Whatever the order in which they are named."""
    assert loan.rehearsal is not None
    assert [each.NAME for each in wanted(loan.rehearsal, ("recovery", "crash"))] == ["crash", "recovery"]
    assert len(wanted(loan.rehearsal)) == 6
