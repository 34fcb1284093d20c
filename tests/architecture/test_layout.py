"""The shape of the repository, kept by tests: sizes, docstrings of packages, names of errors, quick imports."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from casework import errors

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src/casework").rglob("*.py"))
LINES = 400
HEAVY = {
    "temporalio",
    "psycopg",
    "pydantic_ai",
    "fastapi",
    "openai",
    "uvicorn",
    "jsonschema",
    "liquid",
    "ruamel",
    "opentelemetry",
}


def test_no_file_is_longer_than_its_ceiling() -> None:
    """One idea per file: 400 lines at most, in code, SQL and tests."""
    files = [*SOURCES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "src").rglob("*.sql")]
    long = {
        str(file.relative_to(ROOT)): count for file in files if (count := len(file.read_text().splitlines())) > LINES
    }
    assert not long


@pytest.mark.parametrize(
    "package", [file for file in SOURCES if file.name == "__init__.py"], ids=lambda f: f.parent.name
)
def test_a_package_says_what_belongs_there(package: Path) -> None:
    """Every package opens with a docstring."""
    assert ast.get_docstring(ast.parse(package.read_text()))


def test_errors_are_named_listed_and_documented() -> None:
    """Every public error ends in Error, stands in the tree at the top of its file and on the page of errors."""
    page = (ROOT / "docs/reference/errors.md").read_text()
    for name, cls in inspect.getmembers(errors, inspect.isclass):
        if issubclass(cls, errors.CaseworkError):
            assert name.endswith("Error")
            assert name in (errors.__doc__ or ""), f"{name} is missing in the tree of casework.errors"
            assert f"`{name}`" in page, f"{name} is missing in docs/reference/errors.md"


@pytest.mark.parametrize(
    "command",
    [
        "import casework",
        "import sys; sys.argv=['casework','--help']; import casework.cli as c\ntry: c.main()\nexcept SystemExit: pass",
    ],
)
def test_starting_imports_nothing_heavy(command: str) -> None:
    """`import casework` and `casework --help` load no server, driver or provider."""
    show = f"{command}\nimport sys; print('|'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stderr.strip().split("|")}
    assert not loaded & HEAVY
