"""The HTTP door: routes, who may use them, and what a caller is told when something is wrong.

Here belong the routes, the check of a request, tokens and roles, and problem documents. Here do not belong: SQL (the
store's), the rules of a run (the graph's), and anything that acts on its own: a GET never decides, and a decision only
reaches a run as a message, which the run judges again on its own state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from casework.api.app import build, create_app

__all__ = ["build", "create_app"]


def __getattr__(name: str) -> Any:
    """Import the application when it is asked for: FastAPI takes half a second."""
    if name in __all__:
        from casework.api import app  # noqa: PLC0415  # lazy on purpose, see the docstring

        return getattr(app, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
