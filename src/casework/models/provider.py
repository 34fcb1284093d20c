"""Real models, through pydantic-ai's provider layer: one answer per request, no retries of their own.

How an answer is had: send the conversation; if the model asks for tools, that is the answer. Otherwise, with an output
schema, it must hold to it, whether given through `final_answer` or as JSON text; if not, the model is told what is
wrong and asked again, at most twice, within the same deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from casework.agents.messages import Request
from casework.agents.model import ModelAnswer, ModelRequest
from casework.errors import FatalError, OperationError, RetryableError
from casework.models.bounds import checked, plain_part
from casework.models.faults import classified
from casework.models.layer import LAYER, load_layer
from casework.models.output import FINAL_ANSWER, fault_of, output_in, output_tool, unwrapped
from casework.values import Plain

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model

ASK_AGAIN = 2
"""How often an answer that does not hold to the schema is asked for anew."""
DEADLINE = 50.0
"""Seconds for one answer, all asking again included: under the 60 s that the activity has."""


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """How a provider is used. Prices are per million tokens; `deadline` is in seconds, for one answer as a whole."""

    temperature: Decimal | None = None
    max_tokens: int | None = None
    input_per_million: Decimal = Decimal(0)
    output_per_million: Decimal = Decimal(0)
    deadline: float = DEADLINE


@dataclass(frozen=True, slots=True)
class BuiltModel:
    """A pydantic-ai model and the key it uses, kept to be struck from messages."""

    model: Model
    key: str | None = None


class ProviderModel:
    """A model of the provider layer. `build` makes it at the first request, so that naming a model costs nothing."""

    def __init__(self, name: str, build: Callable[[], BuiltModel], options: ProviderOptions | None = None) -> None:
        self.name = name
        self._build = build
        self._built: BuiltModel | None = None
        self._options = options or ProviderOptions()

    async def request(self, request: ModelRequest) -> ModelAnswer:
        """Ask for one answer; see the module.

        Raises:
            RetryableError: passing trouble, or the deadline; `retry_after` where the provider named a time.
            FatalError: the provider refuses, or no answer holds to the output schema.
        """
        deadline = self._options.deadline
        conversation: _Conversation | None = None
        error: OperationError
        try:
            async with asyncio.timeout(deadline):
                if self._built is None:
                    # A key file may be read and modules loaded here, neither of which may stop the event loop.
                    await asyncio.to_thread(self._make)
                assert self._built is not None
                conversation = _Conversation(self._built.model, request, self._options, self.name)
                return await conversation.answer()
        except TimeoutError:
            error = RetryableError(f"{self.name}: no answer within {deadline:g} s.")
        except Exception as fault:  # noqa: BLE001 - every fault of a provider gets its class here
            error = classified(fault, self.name, self._built.key if self._built else None)
        if conversation is not None:
            conversation.charge(error)
        # Outside of the handler, so that it has no context: the text of the original may hold a part of the key.
        raise error

    def _make(self) -> None:
        # Two threads that import the provider layer at once meet its modules half made.
        with LAYER:
            if self._built is None:
                load_layer()
                self._built = self._build()


class _Conversation:
    """One answer in the making: the messages so far and what they have used."""

    def __init__(self, model: Model, request: ModelRequest, options: ProviderOptions, name: str) -> None:
        from casework.models import conversion  # noqa: PLC0415 - loads pydantic-ai

        self._conversion = conversion
        self._model = model
        self._schema = request.output_schema
        self._options = options
        self._name = name
        offered = [*request.tools, *([output_tool(self._schema)] if self._schema is not None else [])]
        self._tools = conversion.definitions(offered)
        self._messages: list[ModelMessage] = conversion.history(request.system, request.messages)
        self._tokens_in = self._tokens_out = 0

    async def answer(self) -> ModelAnswer:
        """Ask until an answer holds, at most `ASK_AGAIN` times more.

        Raises:
            FatalError: none did.
        """
        for asked_again in range(ASK_AGAIN + 1):
            response = await self._ask()
            calls = self._conversion.requests_of(response)
            wanted = tuple(call for call in calls if call.name != FINAL_ANSWER or self._schema is None)
            if wanted:
                return self._made(response, asked_again, requests=wanted)
            output, fault = self._judge(response, calls)
            if fault is None:
                return self._made(response, asked_again, output=output)
            self._say(response, calls, fault)
        raise FatalError(f"{self._name}: no answer of {ASK_AGAIN + 1} can be used. The last: {fault}.")

    async def _ask(self) -> ModelResponse:
        from pydantic_ai.direct import model_request  # noqa: PLC0415 - 2.6 s to import
        from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415

        response = await model_request(
            self._model,
            self._messages,
            model_settings=self._settings(),
            model_request_parameters=ModelRequestParameters(function_tools=self._tools),
        )
        self._tokens_in += response.usage.input_tokens or 0
        self._tokens_out += response.usage.output_tokens or 0
        return response

    def charge(self, error: OperationError) -> None:
        """Put on an error what the answers before it have used; of one that never came nobody knows."""
        error.tokens_in, error.tokens_out, error.cost = self._tokens_in, self._tokens_out, self._cost()

    def _cost(self) -> Decimal:
        prices = self._options
        cost = self._tokens_in * prices.input_per_million + self._tokens_out * prices.output_per_million
        return cost / 1_000_000

    def _settings(self) -> Any:
        # The engine retries, by its own policy; the provider's client must not retry before it.
        settings: dict[str, Any] = {"max_retries": 0}
        if self._options.temperature is not None:
            settings["temperature"] = float(self._options.temperature)
        if self._options.max_tokens is not None:
            settings["max_tokens"] = self._options.max_tokens
        return settings

    def _judge(self, response: ModelResponse, calls: tuple[Request, ...]) -> tuple[Plain, str | None]:
        """The output of a response that asks for no tool, and what is wrong with it."""
        text = self._conversion.text_of(response)
        if self._schema is None:
            return None, None if text else "the answer is empty"
        if not calls and not text:
            return None, "the answer is empty"
        output = unwrapped(calls[-1].arguments, self._schema) if calls else output_in(text)
        plain_part(output, "output", self._name)
        fault = fault_of(output, self._schema)
        return output, f"it does not hold to the schema: {fault}" if fault else None

    def _say(self, response: ModelResponse, calls: tuple[Request, ...], fault: str) -> None:
        from pydantic_ai.messages import ModelRequest as Sent  # noqa: PLC0415
        from pydantic_ai.messages import UserPromptPart  # noqa: PLC0415

        how = f"Call {FINAL_ANSWER} with arguments that hold to its schema." if self._schema is not None else "Answer."
        words = UserPromptPart(f"Your answer cannot be used: {fault}. {how}")
        open_calls = {call.call_id: call.name for call in calls}
        self._messages += [response, Sent(parts=self._conversion.answers_first(open_calls, [words]))]

    def _made(
        self, response: ModelResponse, asked_again: int, requests: tuple[Request, ...] = (), output: Plain = None
    ) -> ModelAnswer:
        answer = ModelAnswer(
            text=self._conversion.text_of(response),
            requests=requests,
            output=output,
            parts=self._conversion.parts_of(response),
            tokens_in=self._tokens_in,
            tokens_out=self._tokens_out,
            cost=self._cost(),
            asked_again=asked_again,
        )
        return checked(answer, self._name)
