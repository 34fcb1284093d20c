"""The two acts inside an attempt that have a span of their own: a model's answer and a tool's work.

Activity bodies open them here, and without traces nothing happens. Names and attributes are those of OpenTelemetry's
conventions for generative AI. A tool gets at the span by the normal OpenTelemetry API: its thread and its event loop
have the context of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from casework.telemetry import records

if TYPE_CHECKING:
    from casework.telemetry.tracer import OpenSpan, Tracer


class Answered(Protocol):
    """What an answer of a model tells a span."""

    @property
    def tokens_in(self) -> int:
        """Tokens read."""
        ...

    @property
    def tokens_out(self) -> int:
        """Tokens written."""
        ...

    @property
    def asked_again(self) -> int:
        """Requests after the first."""
        ...


@dataclass(frozen=True)
class ActiveAttempt:
    """The attempt that this context works on: its span, and what every span below it says."""

    tracer: Tracer
    span: OpenSpan
    common: records.Attributes


ACTIVE: ContextVar[ActiveAttempt | None] = ContextVar("casework_attempt", default=None)


STEPS: ContextVar[Callable[[Any], AbstractContextManager[None]] | None] = ContextVar("casework_steps", default=None)
"""In an activity of several steps: what opens the span of an attempt of one, given its call."""


def step_attempt(call: Any) -> AbstractContextManager[None]:
    """An attempt of one of the steps of an activity: its span is around the block."""
    opener = STEPS.get()
    return nullcontext() if opener is None else opener(call)


class ModelSpan:
    """The open span of a model call; silent without traces."""

    def __init__(self, span: OpenSpan | None) -> None:
        self._span = span

    def answered(self, answer: Answered) -> None:
        """Note the figures of the answer."""
        if self._span is not None:
            self._span.set("gen_ai.usage.input_tokens", answer.tokens_in)
            self._span.set("gen_ai.usage.output_tokens", answer.tokens_out)
            self._span.set("casework.asked_again", answer.asked_again)


@contextmanager
def model_call(reference: str, agent: str, attempt: int) -> Iterator[ModelSpan]:
    """A model is asked; `reference` is `provider:model`, `attempt` the ledger's."""
    provider, _, model = reference.partition(":")
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.agent.name": agent,
    }
    with _act(f"chat {model}", "client", about, attempt) as span:
        yield ModelSpan(span)


@contextmanager
def tool_call(name: str, call_id: str, attempt: int) -> Iterator[None]:
    """A tool works; `call_id` is the model's, `attempt` the ledger's."""
    about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
    if call_id:
        about["gen_ai.tool.call.id"] = call_id
    with _act(f"execute_tool {name}", "internal", about, attempt):
        yield


@contextmanager
def _act(name: str, kind: records.Kind, about: records.Attributes, attempt: int) -> Iterator[OpenSpan | None]:
    active = ACTIVE.get()
    if active is None:
        yield None
        return
    active.span.set(records.ATTEMPT, attempt)
    about = {**active.common, **about, records.ATTEMPT: attempt}
    with active.tracer.open(name, active.span.place, about, kind=kind) as span:
        yield span
