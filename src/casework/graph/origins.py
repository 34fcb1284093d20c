"""Where a manifest was written: its file, and the line of each part of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from casework.graph.words import one_line

Path = tuple[str | int, ...]

_PLAIN = re.compile(r"[\w$-]{1,100}")


def where(path: Path) -> str:
    """The path as people write it: `spec.nodes[1].agentRef`, `metadata.labels['app.io/name']`."""
    text = "".join(
        f".{part}" if isinstance(part, str) and _PLAIN.fullmatch(part) else f"[{_key(part)}]" for part in path
    )
    return text.removeprefix(".")


def _key(part: str | int) -> str:
    return repr(part) if isinstance(part, int) or len(part) <= 100 else f"{part[:60]!r}..."


def line_of(lines: Mapping[Path, int], path: Path) -> int:
    """The line (from 1) of `path`, or of the nearest part around it that has one."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


@dataclass(frozen=True)
class Origin:
    """The file that a manifest was read from."""

    file: str
    lines: Mapping[Path, int]

    def at(self, path: Path) -> str:
        """File, line and path of a part of the manifest, as in `loan.yaml:12: spec.nodes[0].agentRef`."""
        return f"{one_line(self.file)}:{line_of(self.lines, path)}: {where(path)}".removesuffix(": ")
