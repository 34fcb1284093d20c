"""Run benchmarks and write their parts of `docs/benchmarks.md`: `python -m benchmarks.table [--quick] [NAME...]`.

Each benchmark has a part of the page: what its module's docstring says, and the table of its figures. Without a name
all are run; with names, the parts of the others stay as they are.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs/benchmarks.md"
NOT_BENCHMARKS = {"__init__", "harness", "table"}
HEAD = """# Benchmarks

Written by `make bench`. Each benchmark measures both sides in one run on one machine and shows medians. A ratio above 1
means that ours is better, in whatever unit.
"""


def names() -> list[str]:
    """All benchmarks."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NOT_BENCHMARKS)


def run(name: str, *options: str) -> dict[str, Any]:
    """One benchmark in a process of its own; the peers' own words do not count.

    Raises:
        SystemExit: it failed, or a promise does not hold; with its own last words.
    """
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FOLDER.parent)
    if done.returncode:
        sys.exit(f"benchmarks.{name} failed with {done.returncode}:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def section(found: Mapping[str, Any], words: str) -> str:
    """A benchmark's part of the page."""
    lines = ["| what | ours | peer | ratio |", "| --- | --- | --- | --- |"]
    for row in found["results"]:
        ratio = "" if row["ratio"] is None else row["ratio"]
        ours = f"{row['ours']:,} {row['unit']}".strip()
        lines.append(f"| {row['what']} | {ours} | {row['peer_name']}: {row['peer']:,} | {ratio} |")
    return "\n".join([words.strip(), "", *lines, "", f"Measured on {found['machine']}.", ""])


def words_of(name: str) -> str:
    """What the benchmark says about itself."""
    return ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text())) or ""


def parts(page: str) -> dict[str, str]:
    """The parts of a page by name."""
    made = (part.split("\n", 1) for part in page.split("\n## ")[1:])
    return {name.strip(): text.strip() + "\n" for name, text in made}


def page(sections: Mapping[str, str]) -> str:
    """The page with these parts, by name."""
    return "\n".join([HEAD, *(f"## {name}\n\n{sections[name]}" for name in sorted(sections))])


def refresh(chosen: Sequence[str], *options: str) -> str:
    """The page with new parts for the chosen benchmarks; parts of benchmarks that are gone are left out."""
    known = names()
    sections = {name: text for name, text in parts(PAGE.read_text()).items() if name in known}
    for name in chosen:
        sections[name] = section(run(name, *options), words_of(name))
    return page(sections)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Run benchmarks and write docs/benchmarks.md.")
    parser.add_argument("--quick", action="store_true", help="smaller work, fewer rounds")
    parser.add_argument("names", nargs="*", choices=[*names(), []], help="benchmarks to run; all unless named")
    given = parser.parse_args()
    PAGE.write_text(refresh(given.names or names(), *(["--quick"] if given.quick else [])))
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
