"""A streamed model reply, split: words for the user, and whole tool calls.

Reads the chunks of the chat-completions protocol, as objects or as dictionaries. A tool call comes in fragments, those
of several calls possibly mixed; it is handed on as soon as its arguments are a whole JSON object, while others are
still on their way. A reply that ends in the middle of one is an error, so that nobody acts on half a call.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from casework.tasktree.errors import ReplyCutError
from casework.tasktree.splitting import LIMIT, Consumer, Split


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model asks for. `arguments` is the JSON text that it sent, whole; empty where it sent none."""

    id: str
    name: str
    arguments: str


class SplitReply(Split[Any]):
    """The split of one reply: `words` yields texts as they come, `calls` whole tool calls.

    async with SplitReply(chunks) as reply:
        await asyncio.gather(show(reply.words), act(reply.calls))
    """

    words: Consumer[str]
    calls: Consumer[ToolCall]

    def __init__(self, source: AsyncIterable[Any], *, limit: int = LIMIT) -> None:
        super().__init__(source, limit=limit)
        self._made = _Calls()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.words = self.consumer(words_in, name="words")
        self.calls = self.consumer(self._made.take, at_end=self._made.rest, name="calls")
        return self


def words_in(chunk: Any) -> Iterator[str]:
    """The text in one chunk; usage and other chunks have none."""
    text = _of(_delta(chunk), "content")
    if text:
        yield text


class _Fragments:
    """One call in the making, and whether its JSON object is whole: told by its braces, each looked at once."""

    def __init__(self) -> None:
        self.id = self.name = ""
        self.texts: list[str] = []
        self._depth = 0
        self._in_text = self._escaped = False

    def add(self, text: str) -> bool:
        """A further piece of the arguments. True: now they are whole."""
        self.texts.append(text)
        closed = False
        for character in text:
            if self._in_text:
                self._in_text = self._escaped or character != '"'
                self._escaped = not self._escaped and character == "\\"
            elif character == '"':
                self._in_text = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                closed = closed or self._depth == 0
        return closed

    def made(self) -> ToolCall:
        return ToolCall(self.id, self.name, "".join(self.texts))

    @property
    def begun(self) -> bool:
        return any(text.strip() for text in self.texts)


class _Calls:
    """The calls of one reply in the making, by their index."""

    def __init__(self) -> None:
        self._open: dict[int, _Fragments] = {}
        self._closed: dict[int, str] = {}  # index -> id of the call handed on

    def take(self, chunk: Any) -> Iterator[ToolCall]:
        """The calls that became whole by `chunk`."""
        for wire in _of(_delta(chunk), "tool_calls") or ():
            yield from self._add(wire)
        if _of(_choice(chunk), "finish_reason"):
            yield from self.rest()

    def _add(self, wire: Any) -> Iterator[ToolCall]:
        index, call_id = _of(wire, "index") or 0, _of(wire, "id") or ""
        going = self._open.get(index)
        if going is not None and call_id and going.id and call_id != going.id:
            yield from self._emit(index, cut=True)  # servers that give every call the same index tell them apart by id
            going = None
        if going is None:
            if call_id in ("", self._closed.get(index)) and index in self._closed:
                return  # nothing but blanks can follow what is whole
            going = self._open[index] = _Fragments()
        function = _of(wire, "function")
        going.id = going.id or call_id
        going.name += _of(function, "name") or ""
        if going.add(_of(function, "arguments") or ""):
            yield from self._emit(index)

    def rest(self) -> Iterator[ToolCall]:
        """At the end: those without arguments. One that has only begun is an error."""
        for index in list(self._open):
            yield from self._emit(index, cut=True)

    def _emit(self, index: int, *, cut: bool = False) -> Iterator[ToolCall]:
        made = self._open.pop(index)
        if cut and made.begun:
            raise ReplyCutError(
                f"The reply ends in the middle of a call of {made.name or 'a tool'!r}: {''.join(made.texts)!r:.200}. "
                "Ask again, or raise the token limit."
            )
        self._closed[index] = made.id
        yield made.made()


def _delta(chunk: Any) -> Any:
    return _of(_choice(chunk), "delta")


def _choice(chunk: Any) -> Any:
    choices = _of(chunk, "choices")
    return choices[0] if choices else None


def _of(thing: Any, field: str) -> Any:
    return thing.get(field) if isinstance(thing, Mapping) else getattr(thing, field, None)
