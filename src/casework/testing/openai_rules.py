"""What the real chat-completions service refuses, and what a scripted model needs to answer in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from casework.agents.messages import Message, Request
from casework.agents.model import ModelAnswer, ModelRequest, ToolSchema
from casework.values import loads


def refusal(body: Any) -> str | None:
    """Why the real service would refuse the request, or None."""
    if not isinstance(body, Mapping):
        return "the body is no JSON object"
    if not isinstance(body.get("model"), str) or not isinstance(body.get("messages"), list) or not body["messages"]:
        return "model and messages are required"
    if body.get("stream_options") is not None and body.get("stream") is not True:
        return "stream_options are for streams"
    return _tools_fault(body.get("tools") or []) or _messages_fault(body["messages"])


def _tools_fault(tools: list[Any]) -> str | None:
    for tool in tools:
        function = tool.get("function") if tool.get("type") == "function" else None
        if not function or not function.get("name") or function.get("parameters", {}).get("type") != "object":
            return f"malformed tool {tool}"
        if function.get("strict"):
            return f"tool {function['name']} is strict"
    return None


def _messages_fault(messages: list[Any]) -> str | None:
    waiting: set[str] = set()
    for message in messages:
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in waiting:
                return f"tool message answers no call: {message.get('tool_call_id')}"
            waiting.discard(message["tool_call_id"])
        elif waiting:
            return f"tool calls have no answer: {sorted(waiting)}"
        waiting |= {call["id"] for call in message.get("tool_calls") or ()}
    return f"tool calls have no answer: {sorted(waiting)}" if waiting else None


def asked_of(body: Mapping[str, Any]) -> ModelRequest:
    """The request of a wire body, so that a script can answer a real conversation."""
    system = "\n".join(m["content"] for m in body["messages"] if m["role"] in ("system", "developer"))
    tools = [tool["function"] for tool in body.get("tools") or ()]
    names: dict[str, str] = {}
    messages = [
        _message(i, m, names) for i, m in enumerate(body["messages"], 1) if m["role"] not in ("system", "developer")
    ]
    schema = next((tool["parameters"] for tool in tools if tool["name"] == "final_answer"), None)
    return ModelRequest(
        system=system,
        messages=tuple(messages),
        tools=tuple(
            ToolSchema(tool["name"], tool.get("description", ""), tool["parameters"])
            for tool in tools
            if tool["name"] != "final_answer"
        ),
        output_schema=schema,
        model=str(body["model"]),
    )


def _message(position: int, wire: Mapping[str, Any], names: dict[str, str]) -> Message:
    requests = tuple(
        Request(call["id"], call["function"]["name"], loads(call["function"]["arguments"]))
        for call in wire.get("tool_calls") or ()
    )
    names.update({request.call_id: request.name for request in requests})
    call_id = wire.get("tool_call_id")
    return Message(
        position,
        "",
        wire["role"],
        wire.get("content") or "",
        tuple(request for request in requests if request.name != "final_answer"),
        call_id,
        names.get(call_id or ""),
    )


def wanted_by(answer: ModelAnswer) -> list[tuple[str, Any]]:
    """The tool calls that carry a script's answer over the wire: its requests, or `final_answer` with its output."""
    if answer.requests:
        return [(request.name, request.arguments) for request in answer.requests]
    return [("final_answer", answer.output)] if answer.output is not None else []


Script = Callable[[ModelRequest], ModelAnswer]
