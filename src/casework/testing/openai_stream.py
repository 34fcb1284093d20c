"""An answer of the chat-completions service as the stream of events that carries it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from casework.values import dumps

DONE = "[DONE]"
_PIECE = re.compile(r"\s*\S+|\s+$")
_ARGUMENTS = 12
"""Characters of a tool call's arguments in one event; real ones come in such crumbs."""


def wants_stream(body: Any) -> bool:
    """Whether a request asks for one."""
    return isinstance(body, Mapping) and body.get("stream") is True


def events(completion: str, asked: Mapping[str, Any]) -> Iterator[bytes]:
    """The events for a `chat.completion` body: words one by one, tool calls in fragments, the reason, `[DONE]`."""
    whole: dict[str, Any] = json.loads(completion)
    frame = {**{key: whole[key] for key in ("id", "created", "model")}, "object": "chat.completion.chunk"}
    counted = (asked.get("stream_options") or {}).get("include_usage") is True
    choice = whole["choices"][0]
    for delta in _deltas(choice["message"]):
        yield _event(frame, [_choice(delta)], counted)
    yield _event(frame, [_choice({}, choice["finish_reason"])], counted)
    if counted:
        yield _event({**frame, "usage": whole["usage"]}, [], False)
    yield f"data: {DONE}\n\n".encode()


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "" if message["content"] is not None else None}
    for piece in _PIECE.findall(message["content"] or ""):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        head = {"id": call["id"], "type": "function", "function": {"name": function["name"], "arguments": ""}}
        yield {"tool_calls": [{"index": index, **head}]}
        for start in range(0, len(function["arguments"]), _ARGUMENTS):
            piece = function["arguments"][start : start + _ARGUMENTS]
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _choice(delta: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def _event(frame: Mapping[str, Any], choices: list[dict[str, Any]], counted: bool) -> bytes:
    # Where usage is asked for, every event but the last has the field, empty.
    made = {**frame, "choices": choices, **({"usage": None} if counted else {})}
    return f"data: {dumps(made)}\n\n".encode()
