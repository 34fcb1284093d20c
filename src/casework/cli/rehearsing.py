"""What `demo` and `drill` share: the application's rehearsal, and a stack in a temporary folder, kept on failure."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from casework.rehearsal import Rehearsal


SHIPPED = "casework.examples.loan_underwriting:app"
"""The application that is drilled where none is named."""


def rehearsed(reference: str | None, shipped: str | None = None) -> tuple[str, Rehearsal]:
    """The reference of the application that the command or the settings name, else the shipped one, and its rehearsal.

    Raises:
        InputError: there is no such application, or it gives no rehearsal.
    """
    from casework.app import CONFIG, load_app
    from casework.errors import InputError
    from casework.rehearsal import Rehearsal
    from casework.settings import Settings

    wanted = reference or Settings.load().app.reference or (None if Path(CONFIG).exists() else shipped)
    found = load_app(wanted).rehearsal
    if not isinstance(found, Rehearsal):
        raise InputError(
            f"{wanted} gives no rehearsal, so there is nothing to play. Pass App(..., rehearsal=Rehearsal(...)).",
            field="app",
        )
    return wanted or "", found


class Home:
    """The folder of one demo or drill."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept = True

    def keep(self, wanted: bool) -> None:
        """Whether the folder stays when the command is over; it does unless this says otherwise."""
        self.kept = wanted

    def stack_maker(self, reference: str) -> Callable[[], Any]:
        """Makes stacks on this folder. Servers named by the environment are not used: what is killed here is ours."""
        from casework.cli.supervisor import Stack
        from casework.settings import Settings
        from casework.settings.parts import DatabaseSettings, TemporalSettings

        settings = replace(Settings.load(), database=DatabaseSettings(), temporal=TemporalSettings())
        return lambda: Stack(self.path / "stack", settings, reference)


@contextmanager
def temporary_home(prefix: str) -> Iterator[Home]:
    """A new folder, removed at the end unless it is to be kept: by an error, which names it, not by an interrupt."""
    import click

    home = Home(Path(tempfile.mkdtemp(prefix=prefix)))
    try:
        yield home
    except (KeyboardInterrupt, click.Abort):
        home.keep(False)
        raise
    except BaseException:
        click.echo(f"What was left is in {home.path}", err=True)
        raise
    finally:
        if not home.kept:
            shutil.rmtree(home.path, ignore_errors=True)
