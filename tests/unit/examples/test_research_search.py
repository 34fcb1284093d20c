"""Searching of the research example: words of any script, ranking, three searches, and how they are joined."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from casework.agents import ToolContext
from casework.examples.research.documents import PART, QUOTED, headings_of, parts_of, passages_of, title_of
from casework.examples.research.ranking import FEW, ranked
from casework.examples.research.search import (
    MAX_HITS,
    Found,
    Hit,
    LeftOut,
    join_hits,
    search_headings,
    search_tables,
    search_texts,
)
from casework.examples.research.settings import CORPUS, ROOT, ResearchSettings
from casework.examples.research.words import asked, overlap, words_of


def context(**given: object) -> ToolContext:
    return ToolContext("default", UUID(int=1), "search.1/texts.1", "key", input=given)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ROOT, str(tmp_path))
    return tmp_path


def paths(found: Found) -> list[str]:
    return [hit.path for hit in found.hits]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Bridges' seal, RE-NEWED", ["the", "bridge", "seal", "re", "newed"]),
        ("class bus 184,000", ["class", "bus", "184", "000"]),
        ("橋の修理", ["橋の", "の修", "修理"]),
        ("橋", ["橋"]),
        ("橋bridge橋", ["橋", "bridge", "橋"]),
        ("Мосты МОСТЫ", ["мосты", "мосты"]),
        ("สะพาน", ["สะ", "ะพ", "พา", "าน"]),
        ("पुल", ["पुल"]),
        ("ﬁre \uff22ridge Straße", ["fire", "bridge", "strasse"]),
        ("!? \n", []),
    ],
)
def test_words_of_any_script(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_a_question_of_common_words_alone_is_still_one() -> None:
    assert asked("Why was the bridge closed?") == ["bridge", "closed"]
    assert asked("What is it?") == ["what", "is", "it"]
    assert overlap(["bridge", "ferry"], "Bridges, bridges") == 1


def test_the_text_that_says_more_of_it_comes_first() -> None:
    texts = {"b": "the bridge and the bank", "a": "the bank and the bridge", "c": "bridge bridge bank", "d": "birds"}
    assert [name for name, _ in ranked(["bridge"], texts)] == ["c", "a", "b"]
    assert ranked(["zeppelin"], texts) == []
    assert ranked([], texts) == []
    assert ranked(["a"], {}) == []


def test_a_word_that_most_of_many_texts_have_says_nothing() -> None:
    texts = {f"{n:02}": "der Fluss" for n in range(FEW)} | {"brücke": "der Fluss die Brücke"}
    assert [name for name, _ in ranked(asked("der Brücke"), texts)] == ["brücke"]


def test_each_search_looks_at_another_side(folder: Path) -> None:
    (folder / "plain.txt").write_text("Of the ferry, and at length.\n")
    (folder / "headed.md").write_text("# Birds\n\ntext\n\n## The ferry\n")
    (folder / "table.csv").write_text("year,ferry\n2024,1\n")
    (folder / "ferry-log.txt").write_text("Nothing.\n")
    assert set(paths(search_texts(context(), "ferry"))) == {"plain.txt", "headed.md"}
    assert set(paths(search_headings(context(), "ferry"))) == {"plain.txt", "headed.md", "ferry-log.txt"}
    assert paths(search_tables(context(), "ferry")) == ["table.csv"]


def test_what_cannot_be_read_is_told_beside_the_hits(folder: Path) -> None:
    (folder / "good.txt").write_text("a ferry")
    (folder / "bad.txt").write_bytes(b"\xff\x00ferry")
    (folder / "link.txt").symlink_to("good.txt")
    found = search_texts(context(), "ferry")
    assert paths(found) == ["good.txt"]
    assert found.searched == 1
    assert found.left_out == [
        LeftOut("link.txt", "links are not followed"),
        LeftOut("bad.txt", "'bad.txt' is no text in UTF-8."),
    ]


def test_searches_are_bounded(folder: Path) -> None:
    for number in range(MAX_HITS + 5):
        (folder / f"{number:03}.txt").write_text(f"ferry {number}")
    assert len(paths(search_texts(context(), "ferry"))) == MAX_HITS


def test_a_run_looks_in_its_own_folder(folder: Path) -> None:
    (folder / "one").mkdir()
    (folder / "one/a.txt").write_text("ferry")
    (folder / "b.txt").write_text("ferry")
    assert paths(search_texts(context(folder="one"), "ferry")) == ["a.txt"]
    assert paths(search_texts(context(folder=""), "ferry")) == ["b.txt", "one/a.txt"]


def test_hits_are_joined_each_document_once() -> None:
    """What several searches found comes first; a copy is left out by name; what is beyond the limit is counted."""
    a, b, c, copy = Hit("x/a", "A", "1"), Hit("b", "B", "2"), Hit("c", "C", "3"), Hit("x/z", "Z", "1")
    told = LeftOut("p", "no text")
    found = {"texts": Found([b, a, copy], 9, [told]), "headings": Found([a, c], 9, [told])}
    made = join_hits(context(limit=2), "q", found)
    assert [(each.path, each.source, each.found_by) for each in made.documents] == [
        ("x/a", "x", ["texts", "headings"]),
        ("b", ".", ["texts"]),
    ]
    assert made.left_out == [LeftOut("x/z", "the same text as x/a"), told]
    assert (made.more, made.untold) == (1, 0)


def test_what_is_in_a_document() -> None:
    text = "Intro line\n\n# One\n\nUnder\n-----\n\nMINUTES OF MAY\n"
    assert headings_of(text) == ["One", "Under", "MINUTES OF MAY"]
    assert title_of("a/some-table.csv", "x,y") == "some table"
    assert title_of("a/b.txt", "\n\n  First   line\nmore") == "First line"
    assert title_of("a/no-text.txt", "") == "no text"


def test_passages_stand_in_the_text_word_by_word() -> None:
    text = '# Head\n\nOne is here. "Two!" he said.\nThree goes\non? 橋です。川です。\n\n1. Item\n' + "long " * 200
    found = passages_of("a.md", text)
    assert found[:2] == ["One is here.", '"Two!']
    assert {"橋です。", "川です。"} <= set(found)
    assert all(passage in text and len(passage) <= QUOTED for passage in found)
    assert passages_of("a.csv", "x,y\n1,2\n3,4\n") == ["1,2", "3,4"]


def test_a_long_text_is_read_in_parts_that_make_it_whole() -> None:
    text = "".join(f"line {number}\n" for number in range(3000))
    parts = parts_of(text)
    assert "".join(parts) == text
    assert all(len(part) <= PART for part in parts)
    assert all(part.endswith("\n") for part in parts)
    assert "".join(parts_of("x" * (3 * PART + 1))) == "x" * (3 * PART + 1)


def test_without_settings_the_shipped_corpus_is_searched() -> None:
    assert ResearchSettings.load({ROOT: " "}) == ResearchSettings()
    assert ResearchSettings().root == CORPUS
    assert len(list(CORPUS.rglob("*.*"))) >= 8
