"""Tools called directly: once, under the key that their place in the tree has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from casework.agents.invoke import invoke_inline
from casework.agents.toolbox import Toolbox
from casework.agents.tools import Repeat
from casework.errors import FatalError
from casework.policy.limits import PolicySource
from casework.tasktree import current_node
from casework.trees.local import call_once, seen_here
from casework.values import Plain


@dataclass
class Calls:
    """The tools of one run, and the latest result of each."""

    tools: Toolbox
    run_id: UUID
    input: Mapping[str, Any]
    policies: PolicySource | None = None
    evidence: dict[str, Any] = field(default_factory=dict)

    async def tool(self, name: str, arguments: Plain) -> Plain:
        """Call a tool in the running node; returns its result as plain data.

        Raises:
            ToldError: wrong arguments, or the tool refused.
            RetryableError: passing trouble; it is not tried again here.
            FatalError: the run cannot go on.
        """
        tool = self.tools.get(name)
        if tool.repeat is Repeat.TRANSACTIONAL:
            raise FatalError(
                f"{current_node().path}: tool {name!r} writes in a transaction of the database, and a local run "
                "has none. Start the run durably."
            )
        try:
            result = await call_once(tool, self.run_id, self.input, self.evidence, arguments, self.policies)
        except FatalError as error:
            raise FatalError(f"{current_node().path}: {error}") from error
        self.evidence[name] = result
        return result

    def inline(self, name: str, arguments: Plain) -> Plain:
        """As `tool`, for one that is declared inline, and called at once."""
        tool = self.tools.get(name)
        context = seen_here(tool, self.run_id, self.input, self.evidence, self.policies)
        try:
            result = self.evidence[name] = invoke_inline(tool, context, arguments)
        except FatalError as error:
            raise FatalError(f"{current_node().path}: {error}") from error
        return result
