"""Policy files: what is read, what is refused, and how that is said."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from casework.errors import PolicyFileError
from casework.policy import PolicyLimits, form_of, parse_policy
from casework.policy.files import Form
from casework.values import dumps

HEADING = (
    "purpose,policy_name,version,min_score,auto_approve_ratio,hard_decline_score,hard_decline_ratio,"
    "material_delinquencies"
)
CELLS = "loans,1,700,36,580,50,2"
ROW = "Debt Consolidation,loans,3,700,36.50,580,50,2"
EXPECTED = PolicyLimits("debt_consolidation", "loans", 3, 700, Decimal("36.50"), 580, Decimal(50), 2)

JSON = """[{"purpose": "debt consolidation", "policy_name": "loans", "version": 3, "min_score": 700,
  "auto_approve_ratio": 36.50, "hard_decline_score": 580, "hard_decline_ratio": 50, "material_delinquencies": 2}]"""
YAML = """
policies:
  - purpose: debt-consolidation
    policy_name: loans
    version: 3
    min_score: 700
    auto_approve_ratio: 36.50
    hard_decline_score: 580
    hard_decline_ratio: 50
    material_delinquencies: 2
"""


@pytest.mark.parametrize(
    ("text", "form"),
    [(f"{HEADING}\n{ROW}\n", "csv"), (f"\ufeff{HEADING}\r\n\r\n{ROW}", "csv"), (JSON, "json"), (YAML, "yaml")],
)
def test_each_form_gives_the_same_exact_row(text: str, form: Form) -> None:
    """DA-39. A ratio keeps its digits, in every form of file."""
    parsed = parse_policy(text, form)
    assert parsed.limits == (EXPECTED,)
    assert str(parsed.limits[0].auto_approve_ratio) == "36.50"
    assert parsed.refused == ()


def test_validity_is_read() -> None:
    """DA-39. A row has a validity."""
    text = f"{HEADING},valid_from,valid_until\n{ROW},2026-01-01,\n"
    assert parse_policy(text, "csv").limits[0].valid_from == date(2026, 1, 1)


@pytest.mark.parametrize("null", ["", "  ", "null", "NULL", "~"])
def test_a_row_without_a_key_is_refused_and_reported(null: str) -> None:
    """DA-40. Not dropped in silence, and the other rows are read."""
    parsed = parse_policy(f"{HEADING}\n{null},loans,1,700,36,580,50,2\n{ROW}\n", "csv")
    assert parsed.limits == (EXPECTED,)
    assert [(refused.row, refused.column) for refused in parsed.refused] == [(1, "purpose")]
    assert "no key" in parsed.refused[0].reason


@pytest.mark.parametrize("purpose", ["ca\x00r", "ca\x1br", "ca\x7fr", "ca\x85r"])
@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_purpose_with_control_characters_is_no_key(purpose: str, form: Form) -> None:
    """DA-40. Refused and reported, not read as another purpose."""
    rows = [dict(zip(HEADING.split(","), line.split(","), strict=True)) for line in (f"{purpose},{CELLS}", ROW)]
    text = dumps(rows) if form == "json" else f"{HEADING}\n{purpose},{CELLS}\n{ROW}\n"
    if form == "json":
        text = text.replace("\u2400", "\\u0000")
    parsed = parse_policy(text, form)
    assert parsed.limits == (EXPECTED,)
    assert "control characters" in parsed.refused[0].reason


@pytest.mark.parametrize("rows", [["null"], ["", "~"], ["ca\x00r", "null"]])
def test_a_file_of_refused_rows_only_is_refused(rows: list[str]) -> None:
    """DA-40. It must not wipe the policy that is in force."""
    text = "\n".join([HEADING, *(f"{purpose},{CELLS}" for purpose in rows)])
    with pytest.raises(PolicyFileError, match=rf"none of {len(rows)} rows can be used\. Row 1: the purpose"):
        parse_policy(text, "csv")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            "car,loans,3,seven,36,580,50,2",
            "row 1, column min_score: expected a whole number of 0 or more, found 'seven'",
        ),
        ("car,loans,3,,36,580,50,2", "column min_score: expected a whole number of 0 or more, found nothing"),
        ("car,loans,0,700,36,580,50,2", "column version"),
        ("car,loans,1.5,700,36,580,50,2", "column version"),
        ("car,loans,1,700,NaN,580,50,2", "column auto_approve_ratio"),
        ("car,loans,1,700,-1,580,50,2", "column auto_approve_ratio"),
        ("car,loans,1,700,36,580,Infinity,2", "column hard_decline_ratio"),
        ("car,loans,1,700,36,580,1e999999999,2", "column hard_decline_ratio"),
        ("car,loans,1,700,36,800,50,2", "column hard_decline_score: expected at most min_score (700)"),
        ("car,loans,1,700,60,580,50,2", "column hard_decline_ratio: expected at least auto_approve_ratio (60)"),
        ("car,loans,1,700,36,580,50,0", "column material_delinquencies"),
        ("car,,1,700,36,580,50,2", "column policy_name: expected a text, found nothing"),
        ("car,loans,1,700,36,580,50", "7 cells under 8 headings"),
        ("--,loans,1,700,36,580,50,2", "column purpose"),
        (f"{ROW}\ndebt-consolidation,loans,1,700,36,580,50,2", "row 2, column purpose: 'debt_consolidation' is there"),
        (f"car,loans,{'9' * 5000},700,36,580,50,2", "column version"),
    ],
)
def test_a_fault_refuses_the_file_and_names_row_column_and_value(row: str, says: str) -> None:
    """DA-39. Half a policy is worse than the old one."""
    with pytest.raises(PolicyFileError) as caught:
        parse_policy(f"{HEADING}\n{row}\n", "csv", "limits.csv")
    assert "limits.csv, row" in str(caught.value)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "form", "says"),
    [
        ("", "csv", "has no rows"),
        (HEADING, "csv", "has no rows"),
        ("purpose,policy_name\ncar,x", "csv", "heading lacks version"),
        (f"{HEADING},min_scor\n{ROW},1", "csv", "no column 'min_scor'. Did you mean min_score?"),
        (f"{HEADING},purpose\n{ROW},car", "csv", "names a column twice"),
        (f'{HEADING}\n"car', "csv", "is not CSV"),
        ("[1]", "json", "expected a list of rows"),
        ("{", "json", "is not JSON"),
        ("[NaN]", "json", "is not JSON"),
        ("[" * 100_000, "json", "is not JSON"),
        ("null", "json", "has no rows"),
        ("- [", "yaml", "is not YAML"),
        ("just words", "yaml", "expected a list of rows"),
        ("!!python/object/apply:os.system ['true']", "yaml", "expected a list of rows"),
    ],
)
def test_a_text_that_is_no_policy_is_refused(text: str, form: Form, says: str) -> None:
    """DA-39. The message says what was expected."""
    with pytest.raises(PolicyFileError) as caught:
        parse_policy(text, form, "limits")
    assert says in str(caught.value)


def test_the_form_comes_from_the_name() -> None:
    """DA-39. And a name that says none is refused."""
    assert (form_of("a.CSV"), form_of("x/b.yml"), form_of("c.json")) == ("csv", "yaml", "json")
    with pytest.raises(PolicyFileError, match="Rename or convert"):
        form_of("limits.xlsx")
