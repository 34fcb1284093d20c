"""The port to a language model: one request, one answer. Adapters stand in `casework.models`."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from casework.agents.messages import Message, Request
from casework.values import Plain


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as the model sees it. `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: Plain


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What one model call is given. `model` is the reference it was resolved from, as in `openai:gpt-5`.

    With an `output_schema` (JSON Schema) the final answer comes structured in `ModelAnswer.output`.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    output_schema: Plain = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """Either tools to call (`requests`) or the final answer (`text`, and `output` where a schema was given).

    Tokens and `cost` (US dollars) are those of all requests made for this answer: `asked_again` counts the requests
    after the first, made because an answer did not hold to the output schema.
    """

    text: str = ""
    requests: tuple[Request, ...] = ()
    output: Plain = None
    parts: Plain = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Decimal = Decimal(0)
    asked_again: int = 0


class LanguageModel(Protocol):
    """A model that can be asked."""

    @property
    def name(self) -> str:
        """The full reference, as in `scripted:underwriter` or `openai:gpt-5`."""
        ...

    async def request(self, request: ModelRequest) -> ModelAnswer:
        """Ask once.

        Raises:
            RetryableError: passing trouble: too many requests (with `retry_after`), server error, time-out, cut line.
            FatalError: the request or the account is refused, or no answer holds to the output schema.
        """
        ...
