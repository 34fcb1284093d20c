"""Fakes that speak real protocols, for this project's tests and its users'.

Here: `OpenAiServer`, a local server with the chat-completions wire format; `destination`, the frame of a server that
tools act on and that counts. Not here: fixtures of one test tier (they
stand beside their tests), and fakes of our own code, which the tests do not need.
"""

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
