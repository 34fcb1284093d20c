"""Schemas as text, the same text each time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString


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


def value_text(value: Any) -> str:
    """One plain value as YAML, Decimals with their digits; a text of several lines stays readable."""
    writer = YAML(pure=True)
    writer.default_flow_style = False
    writer.width = 4096
    writer.representer.add_representer(Decimal, _decimal)
    out = StringIO()
    writer.dump(_readable(value), out)
    return out.getvalue().removesuffix("...\n")


def _decimal(writer: Any, value: Decimal) -> Any:
    return writer.represent_scalar("tag:yaml.org,2002:float", str(value))


def _readable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_readable(item) for item in value]
    return LiteralScalarString(value) if isinstance(value, str) and "\n" in value else value
