"""Where a manifest was written: its file, and the line of each part of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True)
class Sent(Origin):
    """A manifest of a request: `file` says which, as in `manifests[0]`, and there are no lines."""

    def at(self, path: Path) -> str:
        """The part in the request, as in `manifests[0].spec.nodes[0].agentRef`."""
        return f"{self.file}.{where(path)}"


def sent(index: int) -> Sent:
    """Where the manifest at `index` of a request stands."""
    return Sent(f"manifests[{index}]", {})


_SENT = re.compile(r"\bmanifests\[(\d{1,4})\]((?:\.[\w$-]+|\[\d{1,6}\]|\['[^'\n]{1,100}'\])*)")
_PART = re.compile(r"\.([\w$-]+)|\[(\d+)\]|\['([^']+)'\]")


def in_files(text: str, origins: Sequence[Origin | None]) -> str:
    """`text` with each place in a request, as `Sent` tells it, told as the place in the file it was read from.

    `origins` are those of the manifests of the request, in its order.
    """

    def told(found: re.Match[str]) -> str:
        index = int(found[1])
        origin = origins[index] if index < len(origins) else None
        if origin is None:
            return found[0]
        parts = (next(filter(None, part)) for part in _PART.findall(found[2]))
        return origin.at(tuple(int(part) if part.isdecimal() else part for part in parts))

    return _SENT.sub(told, text)
