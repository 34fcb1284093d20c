"""What pages show as the output of a command, held against what it prints. `...` stands for what is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.docs.commands import Command, commands
from tests.docs.pages import Block

_OTHERS = (
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ?",
    r"127\.0\.0\.1:\d+",
    r"process \d+",
)
"""What is another at every reader: ids, times, ports, processes."""

_WILD = re.compile(
    "|".join([*(f"(?P<w{n}>{each})" for n, each in enumerate(_OTHERS)), r"(?P<left>\.\.\.)", r"(?P<gap> +)"])
)


def shown(block: Block) -> Iterator[tuple[Command, str]]:
    """The commands of a block, each with the output that the page shows after it; empty where it shows none."""
    calls = list(commands(block))
    if block.language != "console":
        yield from ((call, "") for call in calls)
        return
    parts = re.split(r"^\$ .*\n?", block.text, flags=re.MULTILINE)[1:]
    assert len(parts) == len(calls), f"{block.where}: one command a line"
    yield from zip(calls, parts, strict=True)


def fits(text: str, printed: str) -> bool:
    """Whether `printed` is what the page shows: a line of `...` stands for any lines, elsewhere for any text."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else f"{_pattern(line)}\n" for line in text.rstrip("\n").splitlines()
    )
    lines = "".join(f"{line.rstrip()}\n" for line in printed.rstrip("\n").splitlines())
    return re.fullmatch(pattern, lines) is not None


def _pattern(line: str) -> str:
    made, at = "", 0
    for found in _WILD.finditer(line):
        made += re.escape(line[at : found.start()])
        group = found.lastgroup or ""
        made += {"left": ".*", "gap": " +"}.get(group) or _OTHERS[int(group[1:])]
        at = found.end()
    return made + re.escape(line[at:])
