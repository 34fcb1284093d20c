"""The settings as a table, for the generated page of the documentation and for tests."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import typing
from dataclasses import dataclass
from typing import Any

from casework.settings.secret import Secret
from casework.settings.variables import plain_type, variable_of
from casework.settings.whole import parts


@dataclass(frozen=True)
class SettingFacts:
    """One setting as the documentation shows it. `part` and `field` are how code reaches it; `secret` hides it."""

    name: str
    part: str
    field: str
    type: str
    default: str
    doc: str
    secret: bool


def list_settings() -> list[SettingFacts]:
    """Every setting, part by part, in the order of their classes."""
    return [facts for part, cls in parts().items() for facts in _facts(part, cls)]


def _facts(part: str, cls: type[Any]) -> list[SettingFacts]:
    docs, hints = _docs(cls), typing.get_type_hints(cls)
    return [
        SettingFacts(
            name=variable_of(field).name,
            part=part,
            field=field.name,
            type=_type_name(hints[field.name]),
            default="" if field.default is None else str(field.default),
            doc=docs.get(field.name, ""),
            secret=plain_type(hints[field.name]) is Secret,
        )
        for field in dataclasses.fields(cls)
    ]


def _docs(cls: type[Any]) -> dict[str, str]:
    """The text under each field. Python does not keep it, the source does."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            text = ast.literal_eval(below.value)
            found[field.target.id] = " ".join(text.split())
    return found


def _type_name(hint: Any) -> str:
    kind = plain_type(hint)
    choices = typing.get_args(kind)
    return (
        " or ".join(choices) if choices else {"Secret": "secret text", "str": "text"}.get(kind.__name__, kind.__name__)
    )
