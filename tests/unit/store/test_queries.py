"""Named queries and the parameters of writes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from psycopg.types.json import Jsonb

import casework.store
from casework.errors import UnserialisableError
from casework.store import queries
from casework.store.processes.audit_checks import CHECKS
from casework.store.queries import Writing

STORE = Path(casework.store.__file__).parent
MODULES = sorted(file.stem for file in (STORE / "sql").glob("*.sql"))


def test_each_query_has_a_name_and_is_used_and_each_used_name_exists() -> None:
    """The `.sql` files and the code agree; no query is left over."""
    used: dict[str, set[str]] = {module: set() for module in MODULES}
    for text in (file.read_text() for file in STORE.rglob("*.py")):
        loaded = re.search(r'^_SQL = queries\.load\("(\w+)"\)', text, re.MULTILINE)
        if loaded:
            for key in re.findall(r"_SQL\[([^\]]+)\]", text):
                used[loaded[1]] |= set(re.findall(r'"(\w+)"', key))
        for module, name in re.findall(r'queries\.load\("(\w+)"\)\["(\w+)"\]', text):
            used[module].add(name)
    used["process_audit"] |= {check.query for check in CHECKS}
    assert {module: set(queries.load(module)) for module in MODULES} == used


@pytest.mark.parametrize("module", MODULES)
def test_query_is_one_statement_under_its_full_name(module: str) -> None:
    """A query carries `module.name` for messages, and is one statement."""
    for name, query in queries.load(module).items():
        assert query.name == f"{module}.{name}"
        assert b";" not in query.sql
        assert query.sql.strip()


def test_written_texts_are_cleaned_and_counted() -> None:
    """NUL and lone surrogates in texts and JSON are replaced, and `cleaned` says how many."""
    made = Writing(a="x\x00y", b="fine", c=None, d=5).json(e={"k\x00": [float("nan"), "\udc00"]}, f=None)
    assert (made["a"], made["b"], made["c"], made["d"], made["f"]) == ("x\u2400y", "fine", None, 5, None)
    assert isinstance(made["e"], Jsonb)
    assert made["e"].obj == {"k\u2400": ["NaN", "\ufffd"]}
    assert made["cleaned"] == 4


def test_naive_time_is_refused() -> None:
    """A time without a zone is no instant; the field is named."""
    assert Writing(at=datetime(2026, 1, 1, tzinfo=UTC))["cleaned"] == 0
    with pytest.raises(UnserialisableError, match="at cannot be stored"):
        Writing(at=datetime(2026, 1, 1))


@pytest.mark.parametrize("value", [object(), {1: "a"}, {"a": b"bytes"}, 1j])
def test_value_without_json_form_is_refused_by_name(value: Any) -> None:
    """The message names the column."""
    with pytest.raises(UnserialisableError, match="result"):
        Writing().json(result=value)


def test_decimals_keep_their_digits() -> None:
    """JSON parameters are written by the project's own rule."""
    made = Writing().json(result=Decimal("1.10"))["result"]
    assert made.dumps(made.obj) == "1.10"
