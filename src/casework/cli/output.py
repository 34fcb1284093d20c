"""Printing: a table or lines for people, one JSON value for programs. With `--json` stdout holds nothing else."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

import click

from casework.values import Plain, dumps

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
PATH_WIDTH = 60
"""Fewest columns that a path may take, and those that are left to what stands beside it."""
F = TypeVar("F", bound=Callable[..., Any])

json_option: Callable[[F], F] = click.option("--json", "as_json", is_flag=True, help="One JSON value on stdout.")


def emit_json(value: Plain) -> None:
    """One JSON value on one line."""
    click.echo(dumps(value))


def table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], empty: str) -> None:
    """Rows under headings; `columns` is heading by key. With no rows the sentence `empty`.

    On a terminal long cells are cut; for a program that reads them, or a file, they stay whole.
    """
    if not rows:
        click.echo(empty)
        return
    cut = on_terminal()
    cells = [list(columns.values())] + [[_shown(key, row.get(key), cut) for key in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        click.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def on_terminal() -> bool:
    """Whether a person reads what is printed."""
    return sys.stdout.isatty()


def _shown(key: str, value: Any, cut: bool) -> str:
    if not cut:
        return _line(value)
    return path_cell(value, _path_width()) if key == "path" else cell(value)


def _path_width() -> int:
    """Columns for a path: a wide terminal has room for the whole of most."""
    return max(PATH_WIDTH, shutil.get_terminal_size().columns - PATH_WIDTH)


def cell(value: Any, limit: int = 60) -> str:
    """A value in a table: one bounded line without control characters, nothing for None."""
    text = _line(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def path_cell(value: Any, limit: int = PATH_WIDTH) -> str:
    """A path in a table. Where it is too long its begin is left out, as its end tells it from its siblings."""
    text = _line(value)
    if len(text) <= limit:
        return text
    end = text[1 - limit :]
    return "…" + end[max(end.find("/"), 0) :]


def _line(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (dict, list)):
        value = dumps(value)
    return safe(" ".join(str(value).split()))


def safe(text: str) -> str:
    """`text` without what could steer a terminal: others wrote it."""
    return _CONTROL.sub("\ufffd", text)


def when(value: str | None) -> str:
    """An instant to the second with its zone, `2026-11-30 11:41:22Z`; empty for None."""
    if not value:
        return ""
    return datetime.fromisoformat(value).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def words(value: Plain) -> str:
    """A plain value in a line of prose: `score 665, verified yes, employer (title Engineer, years 4)`."""
    if isinstance(value, Mapping):
        return ", ".join(f"{safe(str(key))} {_part(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return "; ".join(_part(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value == "":
        return "none"
    return f"{value:f}" if isinstance(value, Decimal) else safe(" ".join(str(value).split()))


def _part(value: Plain) -> str:
    return f"({words(value)})" if isinstance(value, (Mapping, list)) and value else words(value)


def facts(data: Plain) -> str:
    """An event's data in words, without what is null; empty where there is none."""
    if isinstance(data, Mapping):
        data = {key: value for key, value in data.items() if value is not None}
    return words(data) if data else ""


def _asked(form: Any) -> str:
    """Of a form the first line of its question; of one about a failed Transaction what failed, where and why."""
    error = form.get("error")
    if isinstance(error, Mapping):
        where = "/".join(str(error.get(part) or "") for part in ("process", "task"))
        return f"{error.get('code')} at {where}: {error.get('short')}"
    return str(form["question"]).strip().partition("\n")[0]


def is_form(recommendation: Plain) -> bool:
    """Whether what stands as the recommendation is the question of a manual task."""
    return isinstance(recommendation, Mapping) and recommendation.keys() >= {"question", "transaction"}


def gist(recommendation: Plain) -> str:
    """A recommendation in words: the verdict first, where it is made of `recommendation` and `rationale`; of the form
    of a manual task a line."""
    if is_form(recommendation):
        return cell(_asked(recommendation), 120)
    if isinstance(recommendation, Mapping) and recommendation.keys() == {"recommendation", "rationale"}:
        return f"{words(recommendation['recommendation'])}: {words(recommendation['rationale'])}"
    return words(recommendation)
