"""What trees in tests tell about themselves beside the engine: once for the whole process, sandboxes included."""

from __future__ import annotations

from typing import Any

NOTES: list[str] = []
SEEN: dict[str, list[dict[str, Any]]] = {}
"""How the nodes of each random tree ended, by its `id`."""
