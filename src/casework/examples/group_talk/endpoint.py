"""Roles that a language model answers for, streamed from any endpoint with the chat-completions protocol."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from casework.agents.scrub import scrubbed
from casework.examples.group_talk.parts import Heard, Role
from casework.tasktree import words_in

if TYPE_CHECKING:
    from openai import AsyncOpenAI

TIMEOUT = 60.0
"""Seconds of silence after which a reply is given up."""
_NO_KEY = "not-set"
"""Sent where an address needs no key: the client insists on one."""


class EndpointVoices:
    """Asks `model` for every role: its brief, and all that it has heard. The key is OPENAI_API_KEY of the environment.

    A reply that is closed early closes its connection, and the endpoint stops writing. Use it in `async with`.

    Raises:
        ValueError: neither an address nor a key is there.
    """

    def __init__(self, model: str, base_url: str | None = None, timeout: float = TIMEOUT) -> None:
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not key and base_url is None:
            raise ValueError(
                "A model needs a key, or an endpoint that asks for none. Set OPENAI_API_KEY, or name the endpoint's "
                "address by --base-url (base_url)."
            )
        self._model = model
        self._options: dict[str, Any] = {"api_key": key or _NO_KEY, "base_url": base_url, "timeout": timeout}
        self._client: AsyncOpenAI | None = None
        self._heard: defaultdict[str, list[str]] = defaultdict(list)

    async def reply(self, role: Role, heard: Heard) -> AsyncIterator[str]:
        """As `Voices.reply`."""
        said = self._heard[role.name]
        said.append(heard.text)
        # One message for all: some endpoints refuse two of one role in a row.
        messages: Any = [{"role": "system", "content": role.brief}, {"role": "user", "content": "\n\n".join(said)}]
        stream = await self._made().chat.completions.create(model=self._model, messages=messages, stream=True)
        try:
            async for chunk in stream:
                for words in words_in(chunk):
                    yield words
        finally:
            await stream.close()

    @property
    def address(self) -> str:
        """Where the model is asked, without user and password."""
        return scrubbed(str(self._made().base_url), {})

    def _made(self) -> AsyncOpenAI:
        if self._client is None:
            from openai import AsyncOpenAI  # noqa: PLC0415 - heavy, and scripted talks need none

            self._client = AsyncOpenAI(**self._options)
        return self._client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()
