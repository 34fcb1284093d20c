"""Run every benchmark and write the table of `docs/benchmarks.md`: `python -m benchmarks.table [--quick]`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs/benchmarks.md"
NOT_BENCHMARKS = {"__init__", "harness", "table"}
HEAD = """# Benchmarks

Written by `make bench`: both sides in one run, alternating, medians. A ratio above 1 means that ours is better.

"""


def run(name: str, *options: str) -> dict[str, Any]:
    """One benchmark in a process of its own; the peers' own words do not count."""
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=FOLDER.parent)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def table(found: list[dict[str, Any]]) -> str:
    """The page."""
    lines = ["| benchmark | what | ours | peer | ratio | machine |", "| --- | --- | --- | --- | --- | --- |"]
    for each in found:
        for row in each["results"]:
            figures = f"{row['ours']:,} {row['unit']} | {row['peer_name']}: {row['peer']:,} | {row['ratio']}"
            lines.append(f"| {each['name']} | {row['what']} | {figures} | {each['machine']} |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    names = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NOT_BENCHMARKS)
    PAGE.write_text(table([run(name, *sys.argv[1:]) for name in names]))
    print(PAGE.read_text())
