"""Schemas as text, the same text each time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any

from ruamel.yaml import YAML


def yaml_text(documents: Iterable[Mapping[str, Any]]) -> str:
    """YAML documents, in the order of their keys as given."""
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # typed by its default, None
    writer.width = 4096
    out = StringIO()
    writer.explicit_start = True
    writer.dump_all(list(documents), out)
    return out.getvalue()
