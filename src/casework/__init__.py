"""Casework: AI agents that work cases which survive crashes, failing tools, changing policies and people who take days.

The public names are below; they are loaded when they are first used, so that `import casework` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from casework.agents.tools import Happened, Repeat, Tool, ToolContext, tool
    from casework.app import App, load_app
    from casework.errors import CaseworkError, FatalError, InputError, RetryableError, ToldError

__version__ = "0.1.0"

_HOMES = {
    "App": "casework.app",
    "CaseworkError": "casework.errors",
    "FatalError": "casework.errors",
    "Happened": "casework.agents.tools",
    "InputError": "casework.errors",
    "Repeat": "casework.agents.tools",
    "RetryableError": "casework.errors",
    "ToldError": "casework.errors",
    "Tool": "casework.agents.tools",
    "ToolContext": "casework.agents.tools",
    "load_app": "casework.app",
    "tool": "casework.agents.tools",
}

__all__ = [
    "App",
    "CaseworkError",
    "FatalError",
    "Happened",
    "InputError",
    "Repeat",
    "RetryableError",
    "ToldError",
    "Tool",
    "ToolContext",
    "__version__",
    "load_app",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'casework' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
