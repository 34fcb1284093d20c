"""Where a manifest was written: its file, and the line of each part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Path = tuple[str | int, ...]


def where(path: Path) -> str:
    """The path as people write it: `spec.nodes[1].agentRef`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


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
        return f"{self.file}:{line_of(self.lines, path)}: {where(path)}".removesuffix(": ")
