"""The pages about the task tree: their pictures are what the tree draws, and no name is forgotten."""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any

import agere.commander
import agere.utils.dispatcher
import agere.utils.llm_async_converters
import pytest

import casework.tasktree
from docs import tree_pictures
from tests.docs.pages import ROOT, all_blocks, blocks

MAPPING = ROOT / "docs/how_to/coming_from_agere.md"

INNER = {"CallHandlerThreadsafeWrapper", "get_null_logger", "Params", "RequiredCallbackDict"}
"""Names that the peer only uses itself."""


def test_pictures_are_current() -> None:
    """TT-21. `python -m docs.tree_pictures` writes them."""
    for path, text in tree_pictures.pictures().items():
        assert path.read_text(encoding="utf-8") == text, path.name


def test_texts_are_current() -> None:
    """TT-21. The tree and the chart that the page shows are drawn by the tree; no other page has a chart."""
    shown = [block.text for block in blocks(tree_pictures.PAGE) if block.language in ("text", "mermaid")]
    assert shown == tree_pictures.texts()
    assert [block.page for block in all_blocks("mermaid")] == [tree_pictures.PAGE]


def rows_below(heading: str) -> list[list[str]]:
    """The cells of the table below a heading of the page."""
    part = tree_pictures.PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return rows[2:]


def test_the_names_that_are_taken_are_all_told() -> None:
    """TT-20. What every node has, but for `task`, which is there to be written."""
    told = {name for names, _ in rows_below("Names that are taken") for name in re.findall(r"`(\w+)`", names)}
    assert told == {name for name in dir(casework.tasktree.Job) if not name.startswith("_")} - {"task"}


def test_the_options_of_a_commander_are_all_told() -> None:
    """Each with what holds without it."""
    told = [row[0].strip("`") for row in rows_below("The Commander's options")]
    assert sorted(told) == sorted(inspect.signature(casework.tasktree.Commander).parameters)


def mapped() -> str:
    return MAPPING.read_text(encoding="utf-8").partition("## The Commander")[2]


def public_members(module: ModuleType) -> list[str]:
    """Every public name of the module, and every public member of its classes."""
    names = [name for name in getattr(module, "__all__", ()) or vars(module) if not name.startswith("_")]
    ours = [name for name in names if getattr(getattr(module, name), "__module__", "agere").startswith("agere")]
    found: list[str] = []
    for name in ours:
        value: Any = getattr(module, name)
        found.append(name)
        if inspect.isclass(value) and not issubclass(value, (BaseException, dict)):
            found += [member for base in value.__mro__ for member in vars(base) if base.__module__.startswith("agere")]
    return sorted({name for name in found if not name.startswith("_")})


@pytest.mark.parametrize(
    "module",
    [agere.commander, agere.utils.dispatcher, agere.utils.llm_async_converters],
    ids=lambda each: each.__name__,
)
def test_every_name_of_the_peer_is_mapped(module: ModuleType) -> None:
    """Each public name, and each public member of a public class, stands on the page."""
    page = mapped()
    names = [name for name in public_members(module) if not inspect.ismodule(getattr(module, name, None))]
    missing = [name for name in names if name not in INNER and not re.search(rf"\b{name}\b", page)]
    assert not missing


def test_every_name_that_the_mapping_gives_exists() -> None:
    """In the right column: names of the package, and of nodes, Commanders and callbacks."""
    cells = [row.split(" | ")[-1] for row in mapped().splitlines() if row.startswith("| `")]
    words = {
        word for cell in cells for code in re.findall(r"`([^`]+)`", cell) for word in re.findall(r"[A-Za-z_]+", code)
    }
    called = {
        word for word in words if re.match(r"[A-Z][a-z]\w+$", word) or word in ("submit", "call", "send", "handler")
    }
    assert called - set(casework.tasktree.__all__) <= {"True", "None", "Future", "Greet", "ToolCalls"}
