"""The pure floors hold to their word: no clock, no chance, no thread, no process, no file, no network."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/casework"
PURE = ("graph", "agents", "review", "policy", "projection", "process", "trees", "durable/workflows")
IMPURE = {
    "time",
    "random",
    "secrets",
    "threading",
    "multiprocessing",
    "subprocess",
    "socket",
    "os",
    "tempfile",
    "shutil",
}
CALLS = {"now", "utcnow", "today", "uuid4", "uuid1", "urandom"}
ALLOWED = {"agents/invoke.py": {"threading", "os", "time"}}
"""The one module there that runs a tool's own code; workflow code may not import it (an import contract says so)."""


def files() -> list[Path]:
    return sorted(file for folder in PURE for file in (SOURCE / folder).rglob("*.py"))


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_pure_module_imports_and_calls_nothing_impure(file: Path) -> None:
    """DA-17. Nothing in workflow code or in the domain reads a clock, draws a number or touches the world."""
    tree = ast.parse(file.read_text())
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    assert not (names & IMPURE) - ALLOWED.get(str(file.relative_to(SOURCE)), set())
    called = {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _of(node.func) != "workflow"
    }
    assert not called & CALLS


def _of(function: ast.Attribute) -> str:
    return function.value.id if isinstance(function.value, ast.Name) else ""
