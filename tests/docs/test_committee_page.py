"""The page of the committee: its local runs print what it shows, and what it says of the minutes is so."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from casework.cli.root import root
from tests.docs.outputs import fits, shown
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/how_to/ask_a_committee.md"


def test_local_runs_print_what_the_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """AW-9. The referred application has a talk, the clear one none."""
    for name in ("CASEWORK_APP", "CASEWORK_MODEL", "LOAN_EVIDENCE_CSV", "LOAN_BUREAU_URL", "LOAN_INCOME_URL"):
        monkeypatch.delenv(name, raising=False)
    block = next(block for block in blocks(PAGE) if block.language == "console")
    calls = list(shown(block))
    assert len(calls) == 2
    for call, output in calls:
        done = CliRunner().invoke(root, call.words[1:])
        assert fits(output, done.output), done.output
    assert "The run at" not in done.output
