"""What a free tree is given: its input, and the two ways out of it, to models and to tools.

Both ways are handlers below the node that is running, so the same code has the same paths wherever it runs. Asks of
one agent wait for each other, in the order in which they were made, since they share a transcript; asks of several do
not.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from casework.errors import InputError, NotFoundError
from casework.tasktree import call, handler
from casework.values import ENTRY_BYTES, bounded, dumps, loads

TOOL_NAME = 64
"""Characters of a tool's name."""


class TreeContext(Protocol):
    """What the code of a tree may use beside the tree itself."""

    @property
    def input(self) -> Mapping[str, Any]:
        """The run's input, as plain data."""
        ...

    async def ask(self, agent: str, words: str) -> str | Any:
        """One model call: `words` become a user message of the agent's own transcript; returns its answer.

        The answer is recorded before it is returned: text, or the output where the agent has an output schema. In the
        tree it is a node `model.n` below the running node. `words` are at most 256 KB.

        Raises:
            GivenUpError: there is no answer: attempts used, refused by the provider, or it asked for tools.
            NotFoundError: the tree has no such agent.
            InputError: `words` are no text, or too long.
        """
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """One call of a tool of the App; returns its result as plain data. A node `<tool>.n` below the running node.

        Arguments and result are at most 256 KB each.

        Raises:
            ToldError: wrong arguments, or the tool refused; the text is what a model would be told.
            GivenUpError: there is no result: attempts used.
            FatalError: the run cannot go on; it ends FAILED, whatever the tree does.
            InputError: `arguments` are no mapping, or cannot be stored.
        """
        ...


class TreeCalls(ABC):
    """The part of a context that is the same everywhere: checks, nodes, the turns of one agent's asks."""

    def __init__(self, given: Mapping[str, Any], agents: Collection[str]) -> None:
        self._input: dict[str, Any] = dict(loads(dumps(given)))
        self._agents = agents
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def input(self) -> Mapping[str, Any]:
        """The run's input, as plain data."""
        return self._input

    async def ask(self, agent: str, words: str) -> Any:
        """As `TreeContext.ask`."""
        if agent not in self._agents:
            known = ", ".join(sorted(self._agents)) or "none"
            raise NotFoundError(
                f"This tree has no agent {agent!r:.100}. Agents: {known}. Name it in the tree's agents."
            )
        if not isinstance(words, str):
            raise InputError(f"{words!r:.100} is no text. Words to an agent are one.", field="words")
        bounded(words, f"the words to agent {agent}", ENTRY_BYTES)
        return await call(self._ask(agent, words).named("model"))

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """As `TreeContext.call_tool`."""
        if not isinstance(name, str) or not name.strip() or len(name) > TOOL_NAME:
            raise InputError(f"{name!r:.100} is no tool's name. Pass the name of one of the App's tools.", field="name")
        if not isinstance(arguments, Mapping):
            raise InputError(f"Arguments of {name!r} are a mapping, not {arguments!r:.100}.", field="arguments")
        made = bounded(dict(arguments), f"the arguments of {name}", ENTRY_BYTES)
        assert isinstance(made, dict)
        return await call(self._call(name, made).named(name))

    @handler
    async def _ask(self, agent: str, words: str) -> Any:
        async with self._turns[agent]:
            return await self.asked(agent, words)

    @handler
    async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        return await self.called(name, arguments)

    @abstractmethod
    async def asked(self, agent: str, words: str) -> Any:
        """The ask itself, in its own node. No other ask of this agent is under way."""

    @abstractmethod
    async def called(self, name: str, arguments: dict[str, Any]) -> Any:
        """The call itself, in its own node."""
