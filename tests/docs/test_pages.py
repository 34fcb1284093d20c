"""The pages among themselves: links, words, generated pages, and tables that name what is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from casework.projection.entries import Status
from casework.settings.whole import RESERVED, variable_names
from docs import event_page, generate
from tests.docs.pages import PAGES, ROOT, name, prose

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
VARIABLE = re.compile(r"\b((?:CASEWORK|TEMPORAL)_[A-Z_]*[A-Z])\b")
REGISTRIES = ("pypi", "pythonhosted", "npmjs", "crates.io", "conda.anaconda", "ghcr.io", "docker.io")
PEERS = (
    "langgraph",
    "langchain",
    "dbos",
    "airflow",
    "celery",
    "prefect",
    "crewai",
    "autogen",
    "procrastinate",
    "agere",
)
WRITTEN_BY_HAND = [page for page in PAGES if page.name != "requirements.md"]
NAMES_OTHERS = {ROOT / "docs/benchmarks.md", *(ROOT / "docs/how_to").glob("coming_from_*.md")}
"""The pages that may name others: figures stand beside theirs, measured in one run; names beside names."""
INTRODUCES = re.compile(r"\[Coming from \w+\]\([^)]*\)")
"""A link to one of these, which other pages may have."""


def anchor(heading: str) -> str:
    """A heading's anchor, as code hosts make it."""
    kept = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)).lower()
    return kept.strip().replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {anchor(heading) for heading in HEADING.findall(prose(page))}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    """Links to pages, to headings and to files; links to elsewhere are not followed."""
    broken = []
    for link in LINK.findall(prose(page)):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        file, _, heading = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (heading and heading not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", WRITTEN_BY_HAND, ids=name)
def test_pages_speak_of_the_product_alone(page: Path) -> None:
    """No package registry, no path of somebody's machine, no number of an issue, no comparison with others."""
    text = INTRODUCES.sub("", page.read_text(encoding="utf-8")).lower()
    peers = () if page in NAMES_OTHERS else PEERS
    found = [word for word in (*REGISTRIES, *peers, "/work/", "/home/", "/users/") if word in text]
    found += re.findall(r"(?<![\w&(/])#\d+\b", text)
    assert not found


@pytest.mark.parametrize("page", WRITTEN_BY_HAND, ids=name)
def test_settings_that_pages_name_exist(page: Path) -> None:
    """A variable that is named is one that is read."""
    unknown = set(VARIABLE.findall(page.read_text())) - set(variable_names())
    assert not {each for each in unknown if not each.startswith(RESERVED)}


def test_tests_that_pages_name_exist() -> None:
    """What a page says is shown by a test is shown by one of that name."""
    missing = [
        f"{file}::{test}"
        for page in PAGES
        for file, test in TEST.findall(page.read_text())
        if not (ROOT / file).is_file() or f"def {test}(" not in (ROOT / file).read_text()
    ]
    assert not missing


def test_generated_pages_are_current() -> None:
    """The reference is what the code says now; `make docs` writes it."""
    # The page of open requirements changes with every test; tests/architecture looks after it.
    wanted = {path: text for path, text in generate.pages().items() if path.name != "requirements_open.md"}
    assert [name(path) for path in generate.outdated(wanted)] == []


def test_every_kind_of_event_is_described() -> None:
    """A kind that the code writes is on the page, and none is there that nobody writes."""
    written, described = event_page.kinds_in_code(), event_page.documented()
    assert written <= described
    families = {kind for kind in described if kind.startswith("agent.run_") or kind == "agent.model_failed"}
    assert described - written <= families


def test_the_table_of_states_is_whole() -> None:
    """The page of states has exactly the states that there are, in their order."""
    page = (ROOT / "docs/concepts/runs_and_states.md").read_text()
    table = page.partition("## The table of states")[2].partition("\n\n**No run")[0]
    assert tuple(re.findall(r"^\| ([A-Z_]+) \|", table, re.MULTILINE)) == get_args(Status)


def test_every_package_has_its_floor_on_the_page() -> None:
    """The page of the architecture names each package and module of the first level."""
    page = (ROOT / "docs/concepts/architecture.md").read_text()
    found = (ROOT / "src/casework").iterdir()
    first = {each.stem for each in found if each.suffix == ".py" or (each / "__init__.py").is_file()}
    missing = {each for each in first if not each.startswith("_") and f"`{each}`" not in page}
    assert not missing


def test_the_index_leads_to_every_page() -> None:
    """docs/README.md links each page but the decisions, which have a folder of their own."""
    index = ROOT / "docs/README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(index.read_text())}
    pages = {page for page in (ROOT / "docs").rglob("*.md") if page != index and page.parent.name != "decisions"}
    assert pages <= linked
