"""Fakes that speak real protocols, and fixtures, for this project's tests and its users'.

Here: `OpenAiServer`, a local server with the chat-completions wire format; `destination`, the frame of a server that
tools act on and that counts; `plugin`, the fixtures that pytest loads by itself. Not here: fixtures of one test tier
(they stand beside their tests), and fakes of our own code, which the tests do not need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from casework.testing.openai_server import (
        OpenAiServer,
        Recorded,
        Reply,
        calls,
        cut,
        fails,
        halts,
        hangs,
        says,
        scripted,
    )

__all__ = ["OpenAiServer", "Recorded", "Reply", "calls", "cut", "fails", "halts", "hangs", "says", "scripted"]


def __getattr__(name: str) -> Any:
    """The server is imported when it is asked for: pytest loads this package at every start."""
    if name in __all__:
        return getattr(importlib.import_module("casework.testing.openai_server"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
