"""The provider layer, imported once for the whole process.

Its modules are heavy and import one another, so they are loaded when a model is first asked. Threads that do so at the
same time would find modules half made ("partially initialized module"): everything that imports them does it under one
lock.
"""

from __future__ import annotations

import importlib
import threading

LAYER = threading.RLock()
"""Held while anything of the provider layer is imported."""

_MODULES = (
    "pydantic_ai",
    "pydantic_ai.exceptions",
    "pydantic_ai.messages",
    "pydantic_ai.models",
    "pydantic_ai.providers",
    "pydantic_ai.direct",
    "casework.models.conversion",
)


def load_layer() -> None:
    """Import what every model of the provider layer needs."""
    with LAYER:
        for name in _MODULES:
            importlib.import_module(name)


def is_half_made(error: ImportError) -> bool:
    """Whether a module was met while another thread imported it: that passes."""
    return "partially initialized" in str(error) or "circular import" in str(error)
