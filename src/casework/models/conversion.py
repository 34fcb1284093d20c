"""Our messages to pydantic-ai's and back. Pure, apart from the import of pydantic-ai.

An assistant message keeps the provider's own form in `parts` (signatures, thoughts, ids), which goes back as it came;
where that form cannot be read any more, text and tool calls are sent. Every tool call in the history must have its
answer, or providers refuse it: those that never got one, `final_answer` among them, get a short one here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from casework.agents.messages import Message, Request
from casework.models.output import FINAL_ANSWER
from casework.values import Plain, clean, dumps, loads

if TYPE_CHECKING:
    from casework.agents.model import ToolSchema

_NOTED = {FINAL_ANSWER: "Noted."}


def definitions(tools: Iterable[ToolSchema]) -> list[ToolDefinition]:
    """Tool definitions, not strict: strict mode wants every property required."""
    return [
        ToolDefinition(name=t.name, description=t.description, parameters_json_schema=t.parameters, strict=False)
        for t in tools
    ]


def history(system: str, messages: Sequence[Message]) -> list[ModelMessage]:
    """The whole conversation, oldest first."""
    made: list[ModelMessage] = []
    pending: list[ModelRequestPart] = [SystemPromptPart(system)] if system.strip() else []
    unanswered: dict[str, str] = {}
    for message in messages:
        if message.role == "assistant":
            made += _flushed(pending, unanswered)
            pending = []
            response = _response(message)
            unanswered = {
                part.tool_call_id: part.tool_name for part in response.parts if isinstance(part, ToolCallPart)
            }
            made.append(response)
        elif message.role == "tool":
            unanswered.pop(message.call_id or "", None)
            pending.append(ToolReturnPart(message.tool or "", message.content, tool_call_id=message.call_id or ""))
        elif message.role == "user":
            pending.append(UserPromptPart(message.content))
    return [*made, *_flushed(pending, unanswered)]


def answers_first(calls: dict[str, str], parts: list[ModelRequestPart]) -> list[ModelRequestPart]:
    """`parts` with an answer for each of `calls` (id to tool name) before everything else."""
    said: list[ModelRequestPart] = [
        ToolReturnPart(tool, _NOTED.get(tool, "No result."), tool_call_id=call_id) for call_id, tool in calls.items()
    ]
    return [*said, *parts]


def requests_of(response: ModelResponse) -> tuple[Request, ...]:
    """The tools that a response asks for, `final_answer` among them."""
    calls = (part for part in response.parts if isinstance(part, ToolCallPart))
    return tuple(Request(part.tool_call_id, part.tool_name, _arguments(part.args)) for part in calls)


def text_of(response: ModelResponse) -> str:
    """The text of a response."""
    return "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()


def parts_of(response: ModelResponse) -> Plain:
    """The response as plain data, to be sent back as it is."""
    return clean(loads(ModelMessagesTypeAdapter.dump_json([response]))).value[0]


def _flushed(pending: list[ModelRequestPart], unanswered: dict[str, str]) -> list[ModelMessage]:
    parts = answers_first(unanswered, pending)
    return [ModelRequest(parts=parts)] if parts else []


def _response(message: Message) -> ModelResponse:
    if message.parts is not None:
        try:
            (stored,) = ModelMessagesTypeAdapter.validate_json(dumps([message.parts]))
        except ValueError:
            # Written by another release of the provider layer: say the same in plain parts.
            stored = None
        if isinstance(stored, ModelResponse):
            return stored
    parts: list[ModelResponsePart] = [TextPart(message.content)] if message.content.strip() else []
    parts += [ToolCallPart(r.name, _sendable(r.arguments), tool_call_id=r.call_id) for r in message.requests]
    return ModelResponse(parts=parts or [TextPart("(no words)")])


def _arguments(args: str | Mapping[str, Any] | None) -> Plain:
    """What the model sent, as plain data; a text that is no JSON stays a text, and the tool says what is wrong."""
    if not args:
        return {}
    if not isinstance(args, str):
        return loads(dumps(args))
    try:
        return loads(args)
    except ValueError:
        return args


def _sendable(arguments: Plain) -> str | dict[str, Any]:
    return arguments if isinstance(arguments, str) else dumps(arguments)
