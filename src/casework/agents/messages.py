"""The transcript of a run, as data. One `Message` is one row; positions count from 1 without holes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from casework.values import Plain

Role = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Request:
    """A tool that the model asks for. `arguments` is what it sent: an object, or whatever else came, unchecked."""

    call_id: str
    name: str
    arguments: Plain


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the transcript.

    An assistant message carries the tools it asks for in `requests`; a tool message answers one of them, named by
    `call_id` and `tool`. `content` is text: for a tool, the JSON of its result, or the error that the model is told.
    `parts` is the model's own form of an assistant message, sent back to it as it came; None where there is none.
    """

    position: int
    agent: str
    role: Role
    content: str
    requests: tuple[Request, ...] = ()
    call_id: str | None = None
    tool: str | None = None
    parts: Plain = None
