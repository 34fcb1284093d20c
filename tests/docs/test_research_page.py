"""The page of the research example: its local run prints what it shows; its durable part is done on a real stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from casework.cli.root import root
from casework.examples.research.settings import OUTPUT, ROOT
from tests.docs.commands import Command, commands
from tests.docs.outputs import fits, shown
from tests.docs.pages import ROOT as REPOSITORY
from tests.docs.pages import blocks
from tests.docs.test_walkthrough import Reader

PAGE = REPOSITORY / "docs/how_to/research_in_files.md"
SHELL = [call for block in blocks(PAGE) if block.language == "sh" for call in commands(block)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder that is not the checkout, where reports go; the sources can be reached as from there."""
    for name in ("CASEWORK_APP", "CASEWORK_MODEL", ROOT, OUTPUT):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "src").symlink_to(REPOSITORY / "src")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_local_run_prints_what_the_page_shows(folder: Path) -> None:
    """AW-9. And the report is where the page says."""
    (block,) = [block for block in blocks(PAGE) if block.language == "console"]
    ((call, output),) = shown(block)
    done = CliRunner().invoke(root, call.words[1:])
    assert fits(output, done.output), done.output
    assert len(list((folder / "reports").glob("why-was-the-bridge-closed-*.md"))) == 1


def test_the_file_is_drawn_and_run_as_the_name_is(folder: Path) -> None:
    """AW-12. The page's line draws the graph; the file starts a run where the App has what it refers to."""
    (draw,) = [call.words for call in SHELL if call.words[:2] == ["casework", "graph"]]
    assert CliRunner().invoke(root, draw[1:]).exit_code == 0
    assert "source-review" in (folder / "research.svg").read_text(encoding="utf-8")
    words = [
        "runs",
        "start",
        draw[2],
        "--local",
        "--app",
        "casework.examples.research:app",
        "--decide",
        "nothing=close",
    ]
    done = CliRunner().invoke(root, [*words, "--input", '{"question": "zeppelin"}'])
    assert "COMPLETED, outcome nothing_found" in done.output


@pytest.fixture
def reader(folder: Path) -> Iterator[Reader]:
    """Somebody with the page's stack running."""
    made = Reader(folder)
    for call in SHELL:
        made.environment.update(call.variables)
    with made.stack(named("dev").words):
        yield made


def named(*words: str) -> Command:
    return next(call for call in SHELL if call.words[1 : 1 + len(words)] == list(words))


def test_the_durable_part_is_done_as_it_says(reader: Reader) -> None:
    """AW-4, AW-14. On the servers of `casework dev`: started, shown, revised, published, and the file is there."""
    steps = [call.words for call in SHELL if call.words[:1] == ["casework"]]
    steps = [words for words in steps if words[1] not in ("dev", "graph")]
    assert [words[1:3] for words in steps][:3] == [["runs", "start"], ["runs", "watch"], ["review", "show"]]
    for words in steps:
        done = reader.types(words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        reader.notes(done.stdout)
    assert "outcome" in done.stdout
    assert "published" in done.stdout
    (report,) = (reader.folder / "reports").glob("*.md")
    text = report.read_text(encoding="utf-8")
    assert "Revised, as was asked: Shorter, and what of the council?" in text
    assert len(re.findall(r"\[\d+\]", text)) == 3
