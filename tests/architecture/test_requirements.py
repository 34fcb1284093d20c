"""The requirements are kept in the repository, and a test may only claim what is one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ID = re.compile(r"\b(?:TT|DA|BP|AW)-\d+\b")


def known() -> set[str]:
    text = (ROOT / "docs/reference/requirements.md").read_text()
    return set(re.findall(r"^- \*\*((?:TT|DA|BP|AW)-\d+)\*\*", text, re.MULTILINE))


def named_by_tests() -> dict[str, list[str]]:
    """Every id in a docstring of a test function, with the tests that name it."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                for each in ID.findall(ast.get_docstring(node) or ""):
                    found.setdefault(each, []).append(f"{file.relative_to(ROOT)}::{node.name}")
    return found


def test_every_id_that_a_test_names_exists() -> None:
    """A requirement that is claimed is one that is written down."""
    unknown = {each: tests for each, tests in named_by_tests().items() if each not in known()}
    assert not unknown


def test_what_no_test_names_is_listed() -> None:
    """The list of requirements that no test names yet is kept in the docs, and is true."""
    page = (ROOT / "docs/reference/requirements_open.md").read_text()
    listed = set(re.findall(r"^- ((?:TT|DA|BP|AW)-\d+)$", page, re.MULTILINE))
    open_ones = known() - set(named_by_tests())
    assert listed == open_ones, (
        "docs/reference/requirements_open.md is not current: "
        f"add {sorted(open_ones - listed)}, drop {sorted(listed - open_ones)}"
    )
