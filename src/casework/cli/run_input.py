"""Inputs of runs out of a file: JSON (one object or a list of them), JSONL, or CSV whose columns become fields.

The form is what the caller says, else what the file's name says, else JSON. Rows are read one by one, each with its
line; a row at fault carries its error, so that the others go on. A CSV cell is text; the workflow's input schema says
whether it means a number or a yes or no; an empty one leaves its field out.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from casework.errors import InputError
from casework.values import Plain, TwiceError, loads_once

STDIN = Path("-")
"""Stands for standard input: JSON or JSONL, unless another form is named."""
FORMS = ("json", "jsonl", "csv")
_FORM_OF = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


@dataclass(frozen=True)
class Row:
    """One input, or why there is none. `line` counts from 1 in the file (in a JSON list: the place in the list)."""

    line: int
    input: Plain = None
    error: str | None = None


@dataclass(frozen=True)
class Source:
    """A file read as a whole: its rows, and a name for its content from which idempotency keys are made."""

    rows: tuple[Row, ...]
    digest: str
    ignored: tuple[str, ...] = ()
    """Columns of a CSV file that the workflow has no field for."""


def read(
    path: Path,
    schema: Mapping[str, Any],
    mapping: Mapping[str, str],
    limit: int | None = None,
    form: str | None = None,
) -> Source:
    """The rows of the file at `path`, at most `limit`. `form` is one of `FORMS`; None: what the file's name says.

    Raises:
        InputError: there is no such file, it is empty, not UTF-8, or `mapping` does not fit it.
    """
    content = _content(path)
    text = _text(path, content)
    form = form or _FORM_OF.get(path.suffix.lower(), "json")
    if mapping and form != "csv":
        raise InputError(
            f"--map is for CSV; {_named(path)} is read as {form}. Leave it out, or say --format csv.", field="map"
        )
    ignored: tuple[str, ...] = ()
    if form == "csv":
        rows, ignored = _csv(path, text, schema, mapping)
    else:
        rows = _jsonl(text) if form == "jsonl" else _json(path, text)
    found = tuple(row for row, _ in zip(rows, range(limit if limit is not None else len(text) + 1), strict=False))
    if not found:
        raise InputError(
            f"{_named(path)} holds no input. Give a JSON object, a list, JSONL lines or CSV rows.", field="file"
        )
    return Source(found, hashlib.sha256(content).hexdigest(), ignored)


def key_of(source: Source, workflow: str, row: Row) -> str:
    """The idempotency key of a row: the same file sent again starts nothing twice."""
    return f"file:{hashlib.sha256(f'{source.digest}:{workflow}'.encode()).hexdigest()[:32]}:{row.line}"


def text_in(name: str) -> str:
    """The text of a file, or of standard input for `-`.

    Raises:
        OSError, ValueError: it cannot be read, or is not UTF-8.
    """
    return sys.stdin.read() if Path(name) == STDIN else Path(name).read_text(encoding="utf-8-sig")


def one(text: str) -> Plain:
    """The input of `--input`: the JSON itself, or behind an @ the name of its file; `-` is standard input.

    Raises:
        InputError: it is not a JSON object, or the file cannot be read.
    """
    if text == str(STDIN) or text.startswith("@"):
        try:
            text = text_in(text.removeprefix("@"))
        except OSError as error:
            raise InputError(f"--input {text} cannot be read: {error.strerror}. Correct it.", field="input") from None
        except ValueError as error:
            raise InputError(f"--input {text} is no text: {error}. Correct it.", field="input") from None
    try:
        value = loads_once(text)
    except TwiceError as error:
        raise InputError(f"--input {error}. Give it once.", field="input") from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"--input is not JSON: {error}. Quote it, as in --input '{{\"a\": 1}}', or name its file: --input @FILE.",
            field="input",
        ) from None
    if not isinstance(value, dict):
        raise InputError("--input is not a JSON object. Give one, as in --input '{\"a\": 1}'.", field="input")
    return value


def _named(path: Path) -> str:
    return "Standard input" if path == STDIN else str(path)


def _content(path: Path) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Name a file that can.", field="file") from None
    except ValueError as error:
        raise InputError(f"{str(path)!r} is no name of a file: {error}. Name one that is.", field="file") from None


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(
            f"{_named(path)} is not UTF-8 at line {line}. Convert it (iconv -t UTF-8).", field="file"
        ) from None


def _json(path: Path, text: str) -> Iterator[Row]:
    try:
        value = loads_once(text)
    except TwiceError as error:
        raise InputError(f"{_named(path)} {error}. Give it once.", field="file") from None
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("{") and "\n" in text.strip():
            return _jsonl(text)
        raise InputError(
            f"{_named(path)} is not JSON: {error}. If it is another form, say --format jsonl or --format csv.",
            field="file",
        ) from None
    items = value if isinstance(value, list) else [value]
    return (_object(line, item) for line, item in enumerate(items, 1))


def _jsonl(text: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield _object(number, loads_once(line))
        except TwiceError as error:
            yield Row(number, error=str(error))
        except (ValueError, RecursionError) as error:
            yield Row(number, error=f"is not JSON: {error}")


def _object(line: int, value: Plain) -> Row:
    return Row(line, value) if isinstance(value, dict) else Row(line, error="is not a JSON object")


def _csv(
    path: Path, text: str, schema: Mapping[str, Any], mapping: Mapping[str, str]
) -> tuple[Iterator[Row], tuple[str, ...]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise InputError(f"{_named(path)} has no readable header: {error}.", field="file") from None
    fields = _fields(path, header, schema, mapping)
    taken = set(fields.values())
    ignored = tuple(name for name in header if name not in taken)
    return _csv_rows(reader, header, fields, schema), ignored


def _fields(path: Path, header: Sequence[str], schema: Mapping[str, Any], mapping: Mapping[str, str]) -> dict[str, str]:
    """Column by field: what `mapping` says, else the column of the field's own name."""
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(f"{_named(path)} has the column {twice[0]!r} twice. Rename one.", field="file")
    known = list(schema.get("properties", {}))
    for field, column in mapping.items():
        if column not in header:
            raise InputError(
                f"--map {field}={column}: {path} has no column {column!r}.{near(column, header)}", field="map"
            )
        if known and field.split(".")[0] not in known:
            raise InputError(
                f"--map {field}={column}: the workflow has no field {field!r}.{near(field, known)}", field="map"
            )
    return {**{name: name for name in header if name in known and name not in mapping}, **mapping}


def near(name: str, known: Sequence[str]) -> str:
    """A hint for a name that is not known: the near one, else all of them."""
    close = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else f" There are: {', '.join(known) or 'none'}."


def _csv_rows(
    reader: Any, header: Sequence[str], fields: Mapping[str, str], schema: Mapping[str, Any]
) -> Iterator[Row]:
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield Row(reader.line_num, error=f"is not CSV: {error}")
            continue
        if cells is None:
            return
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            yield Row(reader.line_num, error=f"has {len(cells)} cells, the header has {len(header)}")
            continue
        yield Row(reader.line_num, _record(dict(zip(header, cells, strict=True)), fields, schema))


def _record(cells: Mapping[str, str], fields: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Plain]:
    record: dict[str, Plain] = {}
    for field, column in fields.items():
        *outer, last = field.split(".")
        target, part = record, schema
        for name in outer:
            part = part.get("properties", {}).get(name, {})
            target = target.setdefault(name, {})
        value = typed(cells[column], part.get("properties", {}).get(last, {}))
        if value is not ABSENT:
            target[last] = value
    return record


ABSENT = object()
"""An empty cell: the field is left out."""

_YES = {"true", "yes", "y", "1"}
_NO = {"false", "no", "n", "0"}


def typed(cell: str, schema: Mapping[str, Any]) -> Any:
    """What a cell means under its field's schema: an empty one null where that is a value, else nothing.

    What does not fit stays text; the API says what is wrong with it.
    """
    wanted = _types(schema)
    text = cell.strip()
    if not text:
        return None if "null" in wanted else ABSENT
    for kind, read_as in _READERS.items():
        if kind in wanted and (value := read_as(text)) is not None:
            return value
    return cell


def _types(schema: Mapping[str, Any]) -> set[str]:
    named = schema.get("type", [])
    found = {named} if isinstance(named, str) else set(named)
    for key in ("anyOf", "oneOf"):
        for option in schema.get(key, ()):
            found |= _types(option)
    return found


def _integer(text: str) -> int | None:
    number = _number(text)
    return int(number) if number is not None and number == number.to_integral_value() else None


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) < 1000 and "_" not in text else None


def _boolean(text: str) -> bool | None:
    return True if text.lower() in _YES else False if text.lower() in _NO else None


_READERS: dict[str, Callable[[str], Any]] = {"boolean": _boolean, "integer": _integer, "number": _number}
