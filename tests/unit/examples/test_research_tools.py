"""Reading, checking and writing of the research example: what each tool gives, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from casework.agents import ToolContext
from casework.errors import RetryableError, ToldError
from casework.examples.research import reading
from casework.examples.research.documents import PART
from casework.examples.research.reading import (
    Answer,
    Claim,
    Finding,
    Group,
    Note,
    Review,
    Sorted,
    check_quotations,
    line_of,
    read_document,
    set_source_aside,
    sort_notes,
)
from casework.examples.research.report import (
    MAX_FINDINGS,
    Composed,
    Draft,
    Evidence,
    Numbered,
    SubRun,
    compose_report,
    number_evidence,
    save_report,
)
from casework.examples.research.search import Document, Hits, LeftOut
from casework.examples.research.settings import OUTPUT, ROOT

REPORT = Composed("Why? / ../the bridge", "# Why\n")


def context(attempt: int = 1, **given: object) -> ToolContext:
    return ToolContext("default", UUID(int=1), "save.1", "0f-key", attempt=attempt, input=given)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("# The bridge\n\nIt was closed\nin May, and a café opened.\n")
    monkeypatch.setenv(ROOT, str(tmp_path))
    monkeypatch.setenv(OUTPUT, str(tmp_path / "out/reports"))
    return tmp_path


def test_a_document_is_read_in_parts(folder: Path) -> None:
    (folder / "long.txt").write_text("x" * (PART + 10))
    first, second = (read_document(context(), "long.txt", number) for number in (1, 2))
    assert (first.parts, len(first.text), len(second.text), second.kind) == (2, PART, 10, "text")
    with pytest.raises(ToldError, match="has 2 parts; there is no part 3"):
        read_document(context(), "long.txt", 3)
    with pytest.raises(ToldError, match="cannot be read: No such file"):
        read_document(context(), "gone.txt")


def test_notes_are_sorted_by_source() -> None:
    """The relevant first; what brings nothing is set aside, each with its reason, also where the reader failed."""
    paths = ["notes/a", "notes/b", "c", "notes/d", "notes/e"]
    documents = [Document(path, path, "?", []) for path in paths]
    answers = [
        Answer("some", "s", ["q"]),
        Answer("high", "s", []),
        None,
        Answer("none", "s", []),
        Answer("unreadable", "it is gone", []),
    ]
    made = sort_notes(documents, answers)
    assert made.groups == [Group("notes", [Note("notes/b", "high", "s", []), Note("notes/a", "some", "s", ["q"])])]
    assert made.set_aside == [
        LeftOut("c", "it could not be read: the reader failed"),
        LeftOut("notes/d", "says nothing of the question"),
        LeftOut("notes/e", "it is gone"),
    ]


def test_a_source_is_weighed_by_so_many_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_NOTES", 1)
    documents = [Document(path, path, "?", []) for path in ("n/a", "n/b")]
    made = sort_notes(documents, [Answer("high", "s", [])] * 2)
    assert [note.path for note in made.groups[0].notes] == ["n/a"]
    assert made.set_aside == [LeftOut("n/b", "only 1 documents of a source are weighed")]


@pytest.mark.parametrize(
    ("quotation", "line"),
    [
        ("It was closed in May", 3),
        ("closed\n  in   May,", 3),
        ("a cafe\u0301 opened", 4),
        ("It was opened", None),
        ("it was closed", None),
        ("May, and a caf", 4),
        (".*", None),
        ("  ", None),
    ],
)
def test_where_a_quotation_stands(quotation: str, line: int | None) -> None:
    """Word by word, blanks and forms of one character aside; nothing in it is a pattern."""
    assert line_of(quotation, "# The bridge\n\nIt was closed\nin May, and a café opened.\n") == line


def test_each_quotation_is_checked_in_its_file(folder: Path) -> None:
    """What does not stand there, lies elsewhere, is gone or says nothing is refused, and the reason names it."""
    claims = [
        Claim("notes/a.md", "It was closed in May"),
        Claim("notes/a.md", "It was closed in May"),
        Claim("notes/a.md", "It was blown up"),
        Claim("notes/gone.md", "It was closed in May"),
        Claim("other/a.md", "It was closed in May"),
        Claim("notes/../notes/a.md", "It was closed in May"),
        Claim("notes/a.md", "It"),
    ]
    made = check_quotations(context(), "notes", "strong", "why", claims)
    assert made.findings == [Finding("notes/a.md", "It was closed in May", 3)]
    assert made.weight == "strong"
    reasons = ["does not stand there", "No such file", "does not belong", "no path below", "at least 5 characters"]
    assert len(made.refused) == len(reasons)
    for refused, reason in zip(made.refused, reasons, strict=True):
        assert reason in refused.why
        assert "quoted was '" in refused.why
    assert check_quotations(context(), "notes", "strong", "why", claims[2:3]).weight == "none"


def test_evidence_is_numbered_the_stronger_sources_first() -> None:
    fair = Review("a", "fair", "", [Finding("a/1", "q1", 1)])
    strong = Review("b", "strong", "", [Finding("b/1", "q2", 2), Finding("b/2", "q3", 3)], [LeftOut("b/3", "made up")])
    groups = [Group(name, []) for name in "abc"]
    hits = Hits("q", [], [LeftOut("p", "no text")], 0, 0)
    noted = Sorted(groups, [LeftOut("d", "says nothing")])
    made = number_evidence(hits, noted, [SubRun(fair), SubRun(strong), None])
    assert [(each.number, each.source, each.quotation) for each in made.findings] == [
        (1, "b", "q2"),
        (2, "b", "q3"),
        (3, "a", "q1"),
    ]
    assert [(each.source, each.weight) for each in made.sources] == [("b", "strong"), ("a", "fair"), ("c", "none")]
    assert [each.path for each in made.set_aside] == ["d", "b/3", "p"]
    many = Review("a", "fair", "", [Finding("a", f"q{number}", number) for number in range(MAX_FINDINGS + 7)])
    assert number_evidence(hits, Sorted(groups[:1], []), [SubRun(many)]).more == 7
    assert set_source_aside("a", "x" * 1000).why.endswith("xxx")


def test_a_report_cites_what_is_there() -> None:
    evidence = Evidence([Numbered(7, "notes", "fair", "notes/a.md", 3, "It was closed")])
    made = compose_report("Why?", Draft("Why\n# Injected", "Because [7]."), evidence)
    assert made.title == "Why # Injected"
    assert '7. `notes/a.md`, line 3: "It was closed"' in made.markdown
    with pytest.raises(ToldError, match="cites 8, which is no number"):
        compose_report("Why?", Draft("Why", "Because [7] and [8]."), evidence)
    with pytest.raises(ToldError, match="cites nothing"):
        compose_report("Why?", Draft("Why", "Because."), evidence)
    assert "## References" not in compose_report("Why?", Draft("Why", "Nobody knows."), Evidence()).markdown


def test_a_report_is_written_once(folder: Path) -> None:
    """DA-27. A second attempt under the same key leaves the file alone, and clears what a killed one left behind."""
    out = folder / "out/reports"
    out.mkdir(parents=True)
    (out / ".0f-key.1.part").write_text("half a rep")
    first = save_report(context(attempt=2), REPORT)
    file = Path(first.file)
    assert file.read_text() == "# Why\n"
    assert file.name == "why-the-bridge-0f-key.md"
    before = file.stat()
    assert save_report(context(attempt=3), REPORT) == first
    assert [each.name for each in out.iterdir()] == [file.name]
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("title", ["", "!!!", "橋" * 500, "a" * 500, "/" * 50, "../../x", "橋\u0000橋"])
def test_a_title_never_leads_elsewhere(folder: Path, title: str) -> None:
    file = Path(save_report(context(), Composed(title, "x")).file)
    assert file.parent == folder / "out/reports"


def test_an_output_folder_that_cannot_be_written_is_told(folder: Path) -> None:
    (folder / "out").write_text("a file in the way")
    with pytest.raises(RetryableError, match="cannot be written to"):
        save_report(context(), REPORT)
