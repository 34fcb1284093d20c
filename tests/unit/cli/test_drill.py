"""What `casework drill` plays, as its options say."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from casework.cli.drill import SAMPLE, drill
from casework.cli.rehearsing import SHIPPED, rehearsed
from casework.drills.scenarios import wanted
from casework.errors import InputError
from casework.examples.loan_underwriting import app as loan


@pytest.mark.parametrize("shipped", [SHIPPED, SAMPLE])
def test_without_an_application_a_shipped_one_is_drilled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shipped: str
) -> None:
    """Only where nothing names another: the option, the environment, the file in the folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CASEWORK_APP", raising=False)
    other = SAMPLE if shipped == SHIPPED else SHIPPED
    assert rehearsed(None, shipped)[0] == shipped
    assert rehearsed(other, shipped)[0] == other
    monkeypatch.setenv("CASEWORK_APP", other)
    assert rehearsed(None, shipped)[0] == other
    monkeypatch.delenv("CASEWORK_APP")
    (tmp_path / "casework.toml").write_text('app = "no.such:app"\n', encoding="utf-8")
    with pytest.raises(InputError, match="'no'"):
        rehearsed(None, shipped)


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
