"""Problems that admission finds: where, what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from casework.graph.manifests import Manifest
from casework.graph.origins import Path
from casework.graph.words import nearest, one_line


class Problem(NamedTuple):
    """`place` is for a reader (`node 'underwrite'`), `path` leads to the part of the spec (`nodes`, 0, `agentRef`)."""

    place: str
    what: str
    path: Path = ()


def named(resource: Manifest, problems: Iterable[Problem]) -> Iterator[str]:
    """Each problem as a line: file, line and path where the resource was read from a file, then resource and place."""
    for place, what, path in problems:
        at = "" if resource.origin is None else f"{resource.origin.at(('spec', *path))}: "
        yield one_line(f"{at}{resource.kind} {resource.name!r}: {place + ': ' if place else ''}{what}")


def unknown(what: str, name: str, known: Collection[str]) -> str:
    """That there is no such thing, what there is, and the near name."""
    return f"there is no {what} {name!r}; {_known(name, known)}"


def not_taken(owner: str, name: str, known: Collection[str]) -> str:
    """That `owner` takes no such argument, which there are, and the near name."""
    return f"{owner} has no argument {name!r}; {_known(name, known)}"


def _known(name: str, known: Collection[str]) -> str:
    there_are = f"there are {', '.join(sorted(known))}" if known else "there are none"
    return f"{there_are}.{nearest(name, known)}"
