"""A group talk: roles that listen to one another and compete for the floor, held by a tree of tasks.

One code, three ways: with scripted roles (`python -m casework.examples.group_talk`), with any model behind the
chat-completions protocol (`--base-url`, `--model`), and durably, as a free tree (`--app
casework.examples.group_talk:app`). Read `talk.py` first; `parts.py` has the port to whoever speaks; `committee.py` is
the cast that ships, a credit committee.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from casework.app import App

    app: App

__all__ = ["app"]


def __getattr__(name: str) -> object:
    # The talk itself runs anywhere; the application is loaded where it is asked for.
    if name == "app":
        from casework.examples.group_talk.application import app  # noqa: PLC0415

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
