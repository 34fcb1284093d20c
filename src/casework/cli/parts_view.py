"""Parts that the views of a run, of its audit trail and of the demo share. Others wrote the values: all is made safe.

Here: instants, values in words, values over several lines, and an evaluation of policy as its table. Not here: what
belongs to one view alone, and what `output` gives to every command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import click

from casework.cli.output import safe, table
from casework.values import Plain

RULES = {
    "rule": "RULE",
    "comparison": "",
    "threshold": "THRESHOLD",
    "actual": "ACTUAL",
    "result": "RESULT",
    "note": "NOTE",
}
"""The columns of a policy's rules."""

NOTHING = "none"
"""The word for every kind of nothing."""

_FIRST = ("recommendation", "rationale")
"""Keys that are told before the others: the verdict, then why."""


def told(value: Plain) -> str:
    """A value in one line of prose, its keys in one order wherever it comes from: `score 665, verified yes`."""
    if isinstance(value, Mapping):
        return ", ".join(f"{safe(str(key))} {_part(item)}" for key, item in in_order(value)) or NOTHING
    if isinstance(value, list):
        return "; ".join(_part(item) for item in value) or NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return NOTHING if value is None else safe(" ".join(str(value).split())) or NOTHING


def _part(value: Plain) -> str:
    return f"({told(value)})" if isinstance(value, (Mapping, list)) and value else told(value)


def in_order(value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The items: the verdict and its reason first, the rest by name. The database keeps no order of its own."""
    return sorted(value.items(), key=lambda item: (_FIRST.index(item[0]) if item[0] in _FIRST else len(_FIRST), item))


def lines_of(value: Plain) -> Iterator[str]:
    """A value in full over as many lines as it needs: a field a line, a text with its own line breaks."""
    if isinstance(value, Mapping) and value:
        for key, item in in_order(value):
            first, *rest = lines_of(item) if isinstance(item, str) else [told(item)]
            yield f"{safe(str(key))}: {first}"
            yield from (f"  {line}" for line in rest)
    elif isinstance(value, str) and value.strip():
        yield from (safe(line.replace("\t", "  ")) for line in value.strip().splitlines())
    else:
        yield told(value)


def print_lines(value: Plain, indent: str = "  ") -> None:
    """Print a value in full, each line after `indent`."""
    for line in lines_of(value):
        click.echo(f"{indent}{line}".rstrip())


def is_evaluation(value: Plain) -> bool:
    """Whether a value is what policy says of evidence, rule by rule."""
    if not isinstance(value, Mapping) or "recommendation" not in value:
        return False
    rules = value.get("rules")
    return isinstance(rules, list) and all(isinstance(rule, Mapping) for rule in rules)


def policy_named(evaluation: Mapping[str, Any]) -> str:
    """Which policy spoke, and its verdict with the reason."""
    named = f"{told(evaluation.get('policy_name'))} v{told(evaluation.get('version'))}"
    source = told(evaluation.get("source"))
    why = f" ({told(evaluation['source_reason'])})" if evaluation.get("source_reason") else ""
    verdict = f"{told(evaluation.get('recommendation'))}. {told(evaluation.get('rationale'))}"
    return f"{named} from {source}{why}. It says {verdict}"


def print_rules(evaluation: Mapping[str, Any], indent: str = "") -> None:
    """Print the rules as a table; nothing where there are none."""
    if rules := list(evaluation.get("rules") or ()):
        # A column without cells is as wide as its heading; two blanks part it from the next.
        columns = {"": " " * (len(indent) - 2), **RULES} if len(indent) > 2 else RULES
        table(rows=rules, columns=columns, empty="")
