"""The page on writing a workflow: its local run prints what it shows; its durable part is done on a real stack."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from casework.cli.root import root
from tests.docs.commands import commands
from tests.docs.outputs import fits, shown
from tests.docs.pages import ROOT, blocks, write_files
from tests.docs.test_walkthrough import UUID, Reader

PAGE = ROOT / "docs/how_to/write_a_workflow.md"
DEV, *STEPS = [call.words for block in blocks(PAGE) if block.language == "sh" for call in commands(block)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the two files of the page."""
    for name in ("CASEWORK_APP", "CASEWORK_MODEL"):
        monkeypatch.delenv(name, raising=False)
    write_files(PAGE, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    sys.modules.pop("tickets", None)


def test_it_is_checked_drawn_and_run_as_the_page_shows(folder: Path) -> None:
    """AW-4, AW-9, AW-12. Every type of node, walked in memory."""
    for block in blocks(PAGE):
        for call, output in shown(block) if block.language == "console" else ():
            done = CliRunner().invoke(root, call.words[1:])
            assert fits(output, done.output), done.output
    assert "is_refund" in (folder / "triage.svg").read_text(encoding="utf-8")


def test_the_durable_part_is_done_as_it_says(folder: Path) -> None:
    """AW-4, AW-15. Sent back, sent, answered by a signal; then forked into a refund and cancelled."""
    reader = Reader(folder)
    said = []
    with reader.stack(DEV):
        for words in STEPS:
            done = reader.types(words)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            reader.notes(done.stdout)
            said.append(done.stdout)
        (reader.run_id,) = re.findall(rf"Run ({UUID.pattern}) begins", "".join(said))
        forked = reader.types(["casework", "runs", "show", "RUN"]).stdout
    assert len(reader.decided) == 2
    assert "is CANCELLED" in said[-1]
    assert "Forked from is_refund.1" in forked
