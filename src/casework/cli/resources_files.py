"""Manifest files as they are given with `-f`: files, folders and stdin, all read before anything is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from casework.graph.manifests import Resource

ENDINGS = (".yaml", ".yml", ".json")

_option = partial(
    click.option,
    "-f",
    "--file",
    "paths",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A manifest file, a folder of them, or - for stdin. May be given several times.",
)
files_option = _option(required=True)
optional_files = _option()


def read(paths: Sequence[Path]) -> list[Resource]:
    """The resources of all files, in order, each once.

    Raises:
        ManifestError: a file cannot be read, or something in one is refused; lists the problems of all files.
    """
    from casework.errors import ManifestError
    from casework.graph.loading import load_resources

    found: list[Resource] = []
    problems: list[str] = []
    for name, content in _contents(paths):
        try:
            found += load_resources(content, name)
        except ManifestError as error:
            problems.append(str(error))
    problems += _twice(found)
    if problems:
        raise ManifestError("\n".join(problems), field="--file")
    return found


def users_first(found: Sequence[Resource]) -> list[Resource]:
    """The resources in an order in which they can be deleted: each before what it refers to."""
    from casework.graph.manifests import AiWorkflow
    from casework.graph.references import below, referred

    calls = {one.name: referred(one.spec) for one in found if isinstance(one, AiWorkflow)}
    kinds = ("WorkflowSession", "AiWorkflow", "AiAgent", "LlmProvider", "McpServer")

    def place(one: Resource) -> tuple[int, int]:
        users = sum(one.name in below(name, calls) for name in calls) if isinstance(one, AiWorkflow) else 0
        return kinds.index(type(one).__name__), users

    return sorted(found, key=place)


def _contents(paths: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        if str(path) == "-":
            yield "stdin", sys.stdin.buffer.read()
        elif path.is_dir():
            yield from ((str(each), each.read_bytes()) for each in _of_folder(path))
        else:
            yield str(path), path.read_bytes()


def _of_folder(path: Path) -> list[Path]:
    from casework.errors import ManifestError

    found = sorted(each for each in path.iterdir() if each.suffix.lower() in ENDINGS and each.is_file())
    if not found:
        raise ManifestError(f"{path} holds no file that ends in {', '.join(ENDINGS)}. Name another.", field="--file")
    return found


def _twice(found: Sequence[Resource]) -> Iterator[str]:
    seen: dict[tuple[str, str], str] = {}
    for one in found:
        key, place = (type(one).__name__, one.name), one.origin.at(("metadata", "name")) if one.origin else ""
        if key in seen:
            yield f"{place}: {key[0]} {key[1]!r} stands at {seen[key]} too. Remove one."
        seen.setdefault(key, place)
