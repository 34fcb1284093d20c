"""Which requirements there are, which of them tests name, and which are open."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ID = re.compile(r"\b(?:TT|DA|BP|AW)-\d+\b")


def known() -> set[str]:
    """The ids in the page of requirements."""
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


def open_ids() -> list[str]:
    """The ids that no test names, in the order of the requirements."""
    return sorted(known() - set(named_by_tests()), key=lambda each: (each[:2], int(each[3:])))
