"""The pages of the command line, from click's own description of the commands."""

from __future__ import annotations

from collections.abc import Iterator

import click

from casework.cli import exits
from casework.cli.root import root
from casework.errors import CaseworkError
from docs.markdown import GENERATED, cell, table


def commands() -> str:
    """Every command with its arguments and options."""
    text = [
        GENERATED,
        "# Command line",
        "`runs`, `review`, `process`, `transaction`, `monitor`, `workflows`, `apply`, `get`, `describe`, `diff` and "
        "`delete` are clients of the HTTP API: "
        "its address and token come from "
        "`CASEWORK_API_URL` and `CASEWORK_TOKEN`, else from the stack "
        "that runs in this folder. The other commands work on the servers themselves. Nearly all have `--json`; the "
        "[exit codes](exit_codes.md) are the same everywhere.",
        table(
            ("command", "what it does"),
            [(f"[`{_title(path)}`](#{_anchor(path)})", _short(found)) for path, found in _leaves()],
        ),
    ]
    for path, found in _leaves():
        text += [f"## {_title(path)}", *_one(path, found)]
    return "\n\n".join(text)


def _one(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=_title(path))
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{_title(path)} {pieces}\n```"
    yield _paragraphs(command.help)
    options = [
        record
        for each in command.params
        if (record := each.get_help_record(context)) and isinstance(each, click.Option)
    ]
    yield table(("option", "what it does"), [(f"`{name}`", text) for name, text in options])


def leaves() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, by its words after `casework`."""
    yield from _walk((), root)


_leaves = leaves


def _walk(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    if command.invoke_without_command:
        yield path, command  # such a group does something of its own
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _walk((*path, name), found)


def _title(path: tuple[str, ...]) -> str:
    return " ".join(("casework", *path))


def _anchor(path: tuple[str, ...]) -> str:
    return "-".join(("casework", *path))


def _short(command: click.Command) -> str:
    return cell((command.help or "").split("\n\n")[0])


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(cell(part) for part in (text or "").split("\n\n"))


def exit_codes() -> str:
    """The exit codes, and which errors give which."""
    rows = [line for line in (exits.__doc__ or "").splitlines() if line.startswith("|")]
    return "\n\n".join(
        [
            GENERATED,
            "# Exit codes",
            "The same for every command. An error is one sentence on stderr; with `--json` stdout holds JSON or "
            "nothing.",
            "\n".join(rows),
            "`runs watch` gives 1 where the run FAILED or the time was over; `runs start -f` the code of the first "
            "row at fault. "
            "Which error gives which code is in the table of [errors](errors.md).",
        ]
    )


def code_of(cls: type[CaseworkError]) -> str:
    """The exit code of an error class."""
    # The code follows from the class alone; `__new__` makes an instance whatever its constructor wants.
    return str(exits.code_of(cls.__new__(cls)))
