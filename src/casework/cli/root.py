"""The root command, its subcommands by name, and the one place where errors become a sentence and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from casework.cli import exits
from casework.errors import CaseworkError, InputError

COMMANDS: dict[str, tuple[str, str]] = {
    "dev": ("casework.cli.dev:dev", "Start everything on this machine: database, engine, worker, API."),
    "demo": ("casework.cli.demo:demo", "One loan case from start to end, with a worker killed on the way."),
    "drill": ("casework.cli.drill:drill", "Crash drills against real servers; exit 0 only if every promise held."),
    "runs": ("casework.cli.runs:runs", "Start, list, show, watch, compare, signal and cancel runs."),
    "review": ("casework.cli.review:review", "List and show what waits for a person, and decide it."),
    "process": ("casework.cli.process:process", "Business processes: list, start, stop, schedule, look at one."),
    "transaction": (
        "casework.cli.transaction:transaction",
        "Transactions: put in, list, show, answer for failed ones.",
    ),
    "monitor": ("casework.cli.monitor:monitor", "Monitors: configuration in force, stop, poll now."),
    "task": ("casework.cli.task:task", "Run one Task of a business process alone."),
    "steps": ("casework.cli.steps:steps", "Which steps are tried again, and which failed for good."),
    "status": ("casework.cli.status:status", "The whole installation on one screen; exit 0 only if all is well."),
    "workflows": ("casework.cli.workflows:workflows", "The workflows that runs can be started of."),
    "apply": ("casework.cli.resources:apply", "Apply manifests: workflows, agents, providers, servers, sessions."),
    "get": ("casework.cli.resources:get", "List what is applied, or print one manifest."),
    "describe": ("casework.cli.resources:describe", "One resource with its conditions and generations."),
    "diff": ("casework.cli.resources:diff", "Compare manifests with what is applied."),
    "delete": ("casework.cli.resources:delete", "Delete what was applied."),
    "validate": ("casework.cli.resources:validate", "Check manifests without a server."),
    "graph": ("casework.cli.graph:graph", "Draw a workflow as Mermaid text or SVG."),
    "schema": ("casework.cli.schema:schema", "The schemas of manifests, for editors and for Kubernetes."),
    "audit": ("casework.cli.audit:audit", "The whole trail of one run, from PostgreSQL."),
    "policy": ("casework.cli.policy:policy", "Load and show governed policy, as its owner."),
    "token": ("casework.cli.token:token", "Create, list and revoke access tokens."),
    "worker": ("casework.cli.servers:worker", "Run a worker until it is told to stop."),
    "builds": ("casework.cli.builds:builds", "Builds of workers side by side: which gets new runs, which is needed."),
    "api": ("casework.cli.servers:api", "Serve the HTTP API until it is told to stop."),
    "engine": ("casework.cli.engine:engine", "Which Temporal the database's runs are in; accept another."),
    "keys": ("casework.cli.keys:keys", "The keys by which values in histories are encrypted."),
    "migrate": ("casework.cli.servers:migrate", "Bring the database's tables up to date."),
}
"""Each subcommand: where it is, and its line in the help, so that the help imports none of them."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """The names in the order of the table, which is the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        """The command of that name, imported now; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        found = getattr(importlib.import_module(module), name)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        """The list in the help, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the near name in the message where there is one."""
        import difflib

        name = args[0] if args else ""
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        if name and name not in COMMANDS and not name.startswith("-") and near:
            ctx.fail(f"No such command {name!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, "
    "1 failed, 2 bad input, 3 conflict, 4 not allowed, 5 server unreachable, 130 interrupted.",
)
@click.version_option(package_name="casework", prog_name="casework")
def root() -> None:
    """AI agents that work cases which survive crashes, failing tools, changing policies and people who take days."""


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with the exit code of what happened."""
    code = code_of_run(arguments)
    if "temporalio" in sys.modules:
        _leave_at_once(code)
    sys.exit(code)


def _leave_at_once(code: int) -> NoReturn:
    """End without the interpreter's end, where the Temporal SDK can abort after all work is done (PyGILState_Release).

    That would replace the exit code by 134. Everything is closed and written by now.
    """
    import logging

    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def code_of_run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; its exit code. Errors of ours are one sentence on stderr, never a traceback."""
    try:
        result: Any = root.main(args=arguments, prog_name="casework", standalone_mode=False)
        return result if isinstance(result, int) else exits.OK
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _told("Interrupted.", exits.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        return error.exit_code if error.exit_code != 1 else exits.USAGE
    except (CaseworkError, UnicodeEncodeError) as error:
        ours = error if isinstance(error, CaseworkError) else _no_text(error)
        return _told(f"Error: {ours}", exits.code_of(ours))
    except BrokenPipeError:
        # The reader went away (| head): nothing is left to say, and the interpreter must not say it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK
    except OSError as error:
        if error.filename is None:
            raise
        # A file or folder that cannot be made, read or written is a matter of the machine and not of this program.
        return _told(
            f"Error: {error.filename} cannot be used: {error.strerror}. Mend it, or name another.", exits.USAGE
        )


def _no_text(error: UnicodeEncodeError) -> CaseworkError:
    """Bytes of an argument that are no text come as half characters, which cannot be sent."""
    if error.reason != "surrogates not allowed":
        raise error
    return InputError(f"{error.object[:100]!a} holds bytes that are no UTF-8. Write it as text.")


def _told(sentence: str, code: int) -> int:
    from casework.cli.output import safe

    click.echo("\n".join(safe(line) for line in sentence.split("\n")), err=True)
    return code
