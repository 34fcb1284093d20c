"""Policy files: CSV, JSON or YAML text to limits, all or nothing.

A row whose purpose is no key (null, blank, with control characters) is refused and reported, the others are read; where
no row is left, the file is refused, because it would only empty the policy. Any other fault refuses the
whole file and names row and column, because half a policy is worse than the old one. Rows are counted from 1, the
heading of a CSV file not counted.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from casework.errors import InputError, PolicyFileError
from casework.policy.columns import COLUMNS, OPTIONAL, check_names, is_null, read_limits
from casework.policy.limits import PolicyLimits
from casework.policy.purposes import normalise_purpose
from casework.values import loads

Form = Literal["csv", "json", "yaml"]


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that was not read, and why."""

    row: int
    column: str
    reason: str


@dataclass(frozen=True, slots=True)
class ParsedPolicy:
    """The rows of a policy file, one per purpose, and those refused for want of a key."""

    limits: tuple[PolicyLimits, ...]
    refused: tuple[RefusedRow, ...] = ()


def form_of(filename: str) -> Form:
    """The form that a file name's ending says.

    Raises:
        PolicyFileError: the ending is none of csv, json, yaml, yml.
    """
    ending = filename.rpartition(".")[2].lower()
    forms: dict[str, Form] = {"csv": "csv", "json": "json", "yaml": "yaml", "yml": "yaml"}
    if ending not in forms:
        raise PolicyFileError(f"{filename}: a policy file ends in .csv, .json, .yaml or .yml. Rename or convert it.")
    return forms[ending]


def parse_policy(text: str, form: Form, name: str = "policy file") -> ParsedPolicy:
    """Read a policy: columns purpose, policy_name, version, min_score, auto_approve_ratio, hard_decline_score,
    hard_decline_ratio, material_delinquencies, and optionally valid_from and valid_until (dates). JSON and YAML hold a
    list of such rows, or a mapping with the list under `policies`.

    Raises:
        PolicyFileError: the text or a row is not right; names file, row, column, value and remedy.
    """
    readers: dict[Form, Callable[[str, str], list[Mapping[str, Any]]]] = {
        "csv": _csv_rows,
        "json": _json_rows,
        "yaml": _yaml_rows,
    }
    rows = readers[form](text.removeprefix("\ufeff"), name)
    if not rows:
        raise PolicyFileError(f"{name} has no rows. Write one per purpose, with the columns {', '.join(COLUMNS)}.")
    return _read(rows, name)


def _read(rows: Iterable[Mapping[str, Any]], name: str) -> ParsedPolicy:
    found: dict[str, tuple[int, PolicyLimits]] = {}
    refused: list[RefusedRow] = []
    for number, row in enumerate(rows, start=1):
        where = f"{name}, row {number}"
        check_names(row, where)
        if reason := _no_key(row.get("purpose")):
            refused.append(RefusedRow(number, "purpose", reason))
            continue
        limits = read_limits(row, _purpose(row["purpose"], where), where)
        if limits.purpose in found:
            raise PolicyFileError(
                f"{where}, column purpose: {limits.purpose!r} is there already, in row {found[limits.purpose][0]}. "
                "Keep one row per purpose.",
                field="purpose",
            )
        found[limits.purpose] = (number, limits)
    if not found:
        raise PolicyFileError(
            f"{name}: none of {len(refused)} rows can be used. Row {refused[0].row}: {refused[0].reason}. "
            "Give each row a purpose; nothing was loaded.",
            field="purpose",
        )
    return ParsedPolicy(tuple(limits for _, limits in found.values()), tuple(refused))


def _no_key(purpose: Any) -> str | None:
    """Why a row with this purpose has no key, or None."""
    if is_null(purpose):
        return "the purpose is null or blank, so the row has no key"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in str(purpose).strip()):
        return f"the purpose {str(purpose)!r:.80} holds control characters, so the row has no key"
    return None


def _purpose(value: Any, where: str) -> str:
    try:
        return normalise_purpose(str(value))
    except InputError as error:
        raise PolicyFileError(f"{where}, column purpose: {error}", field="purpose") from error


def _csv_rows(text: str, name: str) -> list[Mapping[str, Any]]:
    try:
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if any(map(str.strip, line))]
    except csv.Error as error:
        raise PolicyFileError(f"{name} is not CSV: {error}. Save it as comma-separated UTF-8 text.") from error
    if not lines:
        return []
    heading = [cell.strip() for cell in lines[0]]
    if len(set(heading)) < len(heading):
        raise PolicyFileError(f"{name}: the heading names a column twice. Keep each once.")
    missing = [column for column in COLUMNS if column not in heading and column not in OPTIONAL]
    if missing:
        raise PolicyFileError(f"{name}: the heading lacks {', '.join(missing)}. The columns are {', '.join(COLUMNS)}.")
    return [_csv_row(heading, line, f"{name}, row {number}") for number, line in enumerate(lines[1:], start=1)]


def _csv_row(heading: list[str], line: list[str], where: str) -> Mapping[str, Any]:
    if len(line) != len(heading):
        raise PolicyFileError(
            f"{where}: {len(line)} cells under {len(heading)} headings. Put texts with commas in quotes."
        )
    return dict(zip(heading, line, strict=True))


def _json_rows(text: str, name: str) -> list[Mapping[str, Any]]:
    try:
        return _rows_of(loads(text), name)
    except (ValueError, RecursionError) as error:
        raise PolicyFileError(f"{name} is not JSON: {error}. Mend the text at that place.") from error


def _yaml_rows(text: str, name: str) -> list[Mapping[str, Any]]:
    # Loaded by those who read YAML only, so that importing policy stays quick.
    from ruamel.yaml import YAML  # noqa: PLC0415
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        # `base` reads every scalar as its text, so that 37.89 never passes through a float.
        return _rows_of(YAML(typ="base", pure=True).load(text), name)
    except (YAMLError, ValueError, RecursionError) as error:
        raise PolicyFileError(f"{name} is not YAML: {error}. Mend the text at that place.") from error


def _rows_of(document: Any, name: str) -> list[Mapping[str, Any]]:
    rows = document.get("policies") if isinstance(document, Mapping) else document
    if rows is None:
        return []
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise PolicyFileError(f"{name}: expected a list of rows, or a mapping with the list under 'policies'.")
    return rows
