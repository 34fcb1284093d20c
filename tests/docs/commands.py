"""Shell lines of the documentation, taken apart: which settings they set and which program they call."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import click

from casework.cli.root import root
from tests.docs.pages import Block

_SET = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_JOINS = {"&&", "||", "|", ";"}


@dataclass(frozen=True)
class Command:
    """One call: the variables set for it, and its words."""

    where: str
    variables: dict[str, str]
    words: list[str]


def commands(block: Block) -> Iterator[Command]:
    """The calls of a block: every line of `sh`, and of `console` those after a `$`."""
    for offset, line in enumerate(block.text.splitlines()):
        if block.language == "console" and not line.startswith("$ "):
            continue
        text = line.removeprefix("$ ") if block.language == "console" else line
        for words in _calls(shlex.split(text, comments=True)):
            yield _command(f"{block.page.name}:{block.line + offset}", words)


def _calls(words: list[str]) -> Iterator[list[str]]:
    call: list[str] = []
    for word in words:
        if word in _JOINS:
            yield call
            call = []
        else:
            call.append(word)
    if call:
        yield call


def _command(where: str, words: list[str]) -> Command:
    exported = words[:1] == ["export"]
    rest = words[1:] if exported else words
    variables: dict[str, str] = {}
    while rest and (found := _SET.fullmatch(rest[0])):
        variables[found[1]] = found[2]
        rest = rest[1:]
    return Command(where, variables, rest)


def parse(words: list[str]) -> dict[str, object]:
    """Let click read a `casework` line without running it; the values of the command's parameters.

    Raises:
        click.UsageError: there is no such command or option, or a value does not fit.
    """
    command: click.Command = root
    context = click.Context(root, info_name="casework")
    rest = words
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        _, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command, context = found, click.Context(found, info_name=found.name, parent=context)
    made = command.make_context(command.name, list(rest), parent=context.parent)
    if isinstance(command, click.Group) and not command.invoke_without_command:
        raise click.UsageError(f"{' '.join(words)} names a group of commands, not a command")
    return made.params
