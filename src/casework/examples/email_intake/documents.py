"""What attachments say: the fields of a CSV file or a PDF, each under its name, as text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping

from casework.errors import BusinessError

MOST_PAGES = 20
MOST_CHARACTERS = 200_000
_FIELD = re.compile(r"^[ \t]*([A-Za-z][A-Za-z _]{0,40}?)[ \t]*:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)


def csv_fields(name: str, content: bytes) -> dict[str, str]:
    """The one application of a CSV file with a heading. What is no UTF-8 is read as Windows-1252.

    Raises:
        BusinessError: it is no such file, or has another number of rows than one.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    try:
        separator = ";" if ";" in text.partition("\n")[0] else ","
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise _unreadable("CSV", name, str(error)) from None
    if len(rows) != 1:
        raise BusinessError(
            f"{name} has {len(rows)} applications. Send each in a mail of its own.", code="NOT_ONE_APPLICATION"
        )
    return dict(_named((key, value) for key, value in rows[0].items() if isinstance(value, str)))


def pdf_fields(name: str, content: bytes) -> dict[str, str]:
    """The lines `Name: value` in the text of a PDF.

    Raises:
        BusinessError: it cannot be read, is encrypted, or has no text.
    """
    return dict(_named(_FIELD.findall(pdf_text(name, content))))


def pdf_text(name: str, content: bytes) -> str:
    """The text of the first MOST_PAGES pages, at most MOST_CHARACTERS.

    Raises:
        BusinessError: as `pdf_fields`.
    """
    from pypdf import PdfReader  # noqa: PLC0415 - the extra `documents` is needed when the first PDF comes

    try:
        reader = PdfReader(io.BytesIO(content))
        text = "\n".join(page.extract_text() for page in reader.pages[:MOST_PAGES])
    except Exception as error:  # noqa: BLE001  # a broken file may raise anything: so the library's own pages say
        raise _unreadable("PDF", name, f"{type(error).__name__}: {error}") from None
    if not text.strip():
        raise _unreadable("PDF", name, "it has no text, so it may be a scan")
    return text[:MOST_CHARACTERS]


def _named(pairs: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Names in one form: `Applicant ID` is `applicant_id`; blank values are none."""
    for key, value in pairs:
        name = "_".join((key or "").lower().split())
        if name and value.strip():
            yield name, " ".join(value.split())


def merged(found: Mapping[str, Mapping[str, str]]) -> tuple[dict[str, str], list[str]]:
    """The fields of all attachments by their names, and where they differ; the first that has a field counts."""
    fields: dict[str, str] = {}
    differ: list[str] = []
    for name, values in found.items():
        for key, value in values.items():
            if fields.setdefault(key, value) != value:
                differ.append(f"{key} is {value!r} in {name}, and {fields[key]!r} elsewhere")
    return fields, differ


def _unreadable(kind: str, name: str, why: str) -> BusinessError:
    return BusinessError(f"{name} cannot be read as {kind} ({why:.200}). Ask for it anew.", code=f"UNREADABLE_{kind}")
