"""Free trees: async functions on `casework.tasktree` that run plainly or durably, as the same code.

Belongs here: how a tree is written down (`free_tree`), what it is given (`TreeContext`), what a run of it is pinned to,
and a context for scripts and tests. No engine, no database, no clock. Does not belong here: how it runs durably; that
is `casework.durable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from casework.trees.context import TreeContext
from casework.trees.definition import FreeTree, free_tree

if TYPE_CHECKING:
    from casework.agents.tools import Tool
    from casework.graph.manifests import AiAgent
    from casework.trees.local import LocalContext, LocalModel

__all__ = ["FreeTree", "TreeContext", "free_tree", "local_context"]


def local_context(
    input: Mapping[str, Any] | None = None,  # noqa: A002  # the name that it has in a tree
    models: Mapping[str, LocalModel] | None = None,
    tools: Iterable[Tool] = (),
    agents: Iterable[AiAgent] = (),
) -> LocalContext:
    """A context under plain asyncio, with nothing durable in it: `await tree.run(local_context(...))`.

    `models` answers for each agent by its name: a script (a function from ModelRequest to ModelAnswer, sync or async),
    or a model of `casework.models`. `agents` are manifests whose words and output schema the requests carry.

    Raises:
        ToolDeclarationError: two of `tools` have one name, or one is no tool.
    """
    from casework.trees.local import LocalContext  # noqa: PLC0415 - workflow code never loads what runs tools

    return LocalContext(input or {}, models or {}, tools, agents)
