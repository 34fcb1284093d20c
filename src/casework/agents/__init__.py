"""What an agent is made of: messages, the port to a language model, and tools with their declarations.

Here: `Message` and `Request` (the transcript), `LanguageModel` (port, request, answer), `@tool`, `Tool`, `ToolContext`,
`Toolbox`, `invoke`, which runs one tool under its deadline, and `scrub`, what may be said of its errors. Not here: how
a model is reached (`models`), when a tool runs and how its result is kept (`durable`), which tool an agent may use
(`graph`).

All of it is pure except the module `invoke`, which calls the tool's own code: activities and tests import it, workflow
code never does. It is therefore not re-exported here.
"""

from casework.agents.messages import Message, Request
from casework.agents.model import LanguageModel, ModelAnswer, ModelRequest, ToolSchema
from casework.agents.toolbox import Toolbox
from casework.agents.tools import Happened, Repeat, Tool, ToolContext, tool

__all__ = [
    "Happened",
    "LanguageModel",
    "Message",
    "ModelAnswer",
    "ModelRequest",
    "Repeat",
    "Request",
    "Tool",
    "ToolContext",
    "ToolSchema",
    "Toolbox",
    "tool",
]
