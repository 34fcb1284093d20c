"""The page of the benchmarks: each has its words and its table, and one can be refreshed without the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import table

FOUND = {
    "name": "one",
    "machine": "2 cores",
    "results": [
        {"what": "runs", "unit": "ms", "ours": 1234, "peer": 2468, "peer_name": "another", "ratio": 2.0},
        {"what": "faults", "unit": "", "ours": 0, "peer": 5, "peer_name": "another", "ratio": None},
    ],
}


def test_a_part_has_words_and_figures() -> None:
    made = table.section(FOUND, "What it means.")

    assert made.startswith("What it means.\n\n| what |")
    assert "| runs | 1,234 ms | another: 2,468 | 2.0 |" in made
    assert "| faults | 0 | another: 5 |  |" in made
    assert made.endswith("Measured on 2 cores.\n")


def test_a_page_is_the_sum_of_its_parts() -> None:
    parts = {"one": table.section(FOUND, "Words."), "two": "Others.\n"}

    assert table.parts(table.page(parts)) == parts


def test_refreshing_one_leaves_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And drops those that are no benchmark any more."""
    before = tmp_path / "page.md"
    before.write_text(table.page({"actions": "Old.\n", "gone": "Gone.\n", "tasktree": "Kept.\n"}))
    monkeypatch.setattr(table, "PAGE", before)
    monkeypatch.setattr(table, "run", lambda name, *_: {**FOUND, "name": name})

    made = table.parts(table.refresh(["actions"]))

    assert set(made) == {"actions", "tasktree"}
    assert made["tasktree"] == "Kept.\n"
    assert "1,234 ms" in made["actions"]


@pytest.mark.parametrize("name", table.names())
def test_every_benchmark_says_what_it_measures(name: str) -> None:
    assert len(table.words_of(name)) > 100


@pytest.mark.parametrize("name", table.names())
def test_every_benchmark_is_on_the_page(name: str) -> None:
    """With the words that it says now."""
    assert table.parts(table.PAGE.read_text())[name].startswith(table.words_of(name))
