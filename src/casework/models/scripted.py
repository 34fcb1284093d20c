"""Scripted models: a pure function from request to answer, for demos, tests and drills.

The same request gives the same answer, on every machine and after every restart. Tokens are counted by one rule, so
that figures can be compared; they cost nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from casework.agents import scrub
from casework.agents.messages import Message
from casework.agents.model import ModelAnswer, ModelRequest
from casework.errors import FatalError, OperationError
from casework.models.bounds import checked
from casework.models.output import fault_of
from casework.values import dumps

Script = Callable[[ModelRequest], ModelAnswer]
"""What `App.scripts` holds, by name. It must be pure: no clock, no randomness, no I/O."""

CHARACTERS_PER_TOKEN = 4


class ScriptedModel:
    """A model that answers by a script."""

    def __init__(self, name: str, script: Script) -> None:
        self.name = f"scripted:{name}"
        self._script = script

    async def request(self, request: ModelRequest) -> ModelAnswer:
        """The script's answer, with tokens counted.

        Raises:
            FatalError: the script fails, or its output does not hold to the request's schema.
        """
        try:
            answer = checked(self._script(request), self.name)
        except OperationError as error:
            raise scrub.mended(error, os.environ) from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a script may raise anything; it ends no worker
            said = scrub.told(scrub.words_of(error), os.environ)
            raise FatalError(f"{self.name} failed: {said}. Mend the script.") from None
        if not answer.requests and request.output_schema is not None:
            fault = fault_of(answer.output, request.output_schema)
            if fault:
                raise FatalError(f"{self.name}: its output does not hold to the schema: {fault}. Mend the script.")
        return replace(answer, tokens_in=_tokens(_asked(request)), tokens_out=_tokens(_answered(answer)))


def _asked(request: ModelRequest) -> str:
    tools = dumps(request.tools) if request.tools else ""
    return request.system + tools + "".join(_words(message) for message in request.messages)


def _words(message: Message) -> str:
    return message.content + (dumps(message.requests) if message.requests else "")


def _answered(answer: ModelAnswer) -> str:
    output = dumps(answer.output) if answer.output is not None else ""
    return answer.text + output + (dumps(answer.requests) if answer.requests else "")


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)
