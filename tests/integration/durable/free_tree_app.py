"""The App of the free trees for tests, as a worker process takes it too."""

from __future__ import annotations

import os
import time
from pathlib import Path

from casework.agents import ModelAnswer, ModelRequest, Request, tool
from casework.app import App
from casework.errors import FatalError, RetryableError
from tests.integration.durable import free_trees
from tests.integration.durable.apps import weigh
from tests.integration.durable.tree_notes import NOTES

HANGS = "CASEWORK_TEST_HANGS"
"""In the process of a worker that is to be killed: the file that says that its tool was called. It never returns."""


def parrot(request: ModelRequest) -> ModelAnswer:
    """Says who was asked how often, and what; some words it does not take."""
    said = request.messages[-1]
    NOTES.append(f"asked {said.agent}: {said.content[:40]}")
    if said.content == "refuse":
        raise FatalError("the account is closed")
    if said.content == "slow":
        raise RetryableError("come back later", retry_after=100)
    if said.content == "use tools":
        return ModelAnswer(requests=(Request("c1", "weigh", {"weight": 1}), Request("c2", "weigh", {"weight": 2})))
    asked = sum(1 for message in request.messages if message.role == "user")
    return ModelAnswer(text=f"{said.agent} {asked}: {said.content[:40]}")


@tool(effects=False)
def length(text: str) -> int:
    """How long it is."""
    return len(text)


@tool(effects=False, timeout=55)
def wait_here() -> str:
    """Returns at once, but in the process of a worker that is to be killed."""
    file = os.environ.get(HANGS)
    if file:
        Path(file).touch()
        time.sleep(50)
    return "here"


app = App(tools=[weigh, length, wait_here], scripts={"parrot": parrot}, trees=free_trees.ALL)
