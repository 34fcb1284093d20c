"""Files of inputs: what becomes of their rows, and of rows at fault."""

import io
from decimal import Decimal
from pathlib import Path

import pytest

from casework.cli import run_input
from casework.errors import InputError

SCHEMA = {
    "type": "object",
    "required": ["applicant_id", "amount"],
    "properties": {
        "applicant_id": {"type": "string", "minLength": 1},
        "amount": {"type": "number"},
        "term_months": {"type": "integer"},
        "joint": {"type": "boolean"},
        "ratio": {"type": ["number", "null"]},
        "note": {"type": "string"},
        "employer": {"type": "object", "properties": {"years": {"type": "number"}}},
    },
}


def write(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(
    path: Path, mapping: dict[str, str] | None = None, limit: int | None = None, form: str | None = None
) -> list[run_input.Row]:
    return list(run_input.read(path, SCHEMA, mapping or {}, limit, form).rows)


def test_csv_cells_become_what_the_schema_says(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "in.csv",
        "applicant_id,amount,term_months,joint,ratio,note\n007,1000.10,36,yes,,\n8,2e3,36.0,0,18,x\n",
    )
    first, second = rows(path)
    numbers = {"amount": Decimal("1000.10"), "term_months": 36, "ratio": None}
    assert first.input == {"applicant_id": "007", "joint": True, **numbers}
    assert str(first.input["amount"]) == "1000.10", "a cent is not lost on the way"
    assert second.input["joint"] is False
    assert second.input["term_months"] == 36
    assert (first.line, second.line) == (2, 3)


def test_a_cell_that_does_not_fit_stays_text_for_the_api_to_refuse(tmp_path: Path) -> None:
    (row,) = rows(write(tmp_path, "in.csv", "applicant_id,amount\nA,NaN\n"))
    assert row.input == {"applicant_id": "A", "amount": "NaN"}


def test_an_empty_cell_leaves_its_field_out_also_where_it_is_text(tmp_path: Path) -> None:
    (row,) = rows(write(tmp_path, "in.csv", "applicant_id,amount,joint,note\n,5,, \n"))
    assert row.input == {"amount": 5}


def test_the_form_may_be_named_where_the_file_name_does_not_say_it(tmp_path: Path) -> None:
    path = write(tmp_path, "in.txt", "id,amount\nA,5\n")
    (row,) = rows(path, {"applicant_id": "id"}, form="csv")
    assert row.input == {"applicant_id": "A", "amount": 5}
    with pytest.raises(InputError, match="say --format csv"):
        rows(path, {"applicant_id": "id"})
    with pytest.raises(InputError, match="--format jsonl or --format csv"):
        rows(path)
    found = rows(write(tmp_path, "in.json", "{}\n7\n"), form="jsonl")
    assert [row.error for row in found] == [None, "is not a JSON object"]


def test_a_key_that_stands_twice_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names the key 'a' twice"):
        run_input.one('{"a": 1, "a": 2}')
    with pytest.raises(InputError, match="names the key 'a' twice"):
        rows(write(tmp_path, "in.json", '{"b": {"a": 1,\n"a": 1}}'))
    found = rows(write(tmp_path, "in.jsonl", '{"a": 1}\n{"a": 1, "a": 1}\n{"a": 2}\n'))
    assert [row.error for row in found] == [None, "names the key 'a' twice in one object", None]


@pytest.mark.parametrize("number", ["1e99999999999999999999", "9" * 5000])
def test_a_number_beyond_every_range_is_told(tmp_path: Path, number: str) -> None:
    text = f'{{"amount": {number}}}'
    with pytest.raises(InputError, match="not JSON"):
        run_input.one(text)
    with pytest.raises(InputError, match="not JSON"):
        rows(write(tmp_path, "in.json", text))
    (row,) = rows(write(tmp_path, "in.jsonl", text))
    assert str(row.error).startswith("is not JSON")


def test_mapping_takes_columns_of_other_names_also_into_nested_fields(tmp_path: Path) -> None:
    path = write(tmp_path, "in.csv", "id,loan,employment_years\nA,5,3.5\n")
    (row,) = rows(path, {"applicant_id": "id", "amount": "loan", "employer.years": "employment_years"})
    assert row.input == {"applicant_id": "A", "amount": 5, "employer": {"years": Decimal("3.5")}}


@pytest.mark.parametrize(
    ("mapping", "told"),
    [
        ({"amount": "lone"}, "Did you mean 'loan'?"),
        ({"amont": "loan"}, "Did you mean 'amount'?"),
    ],
)
def test_a_mapping_that_fits_nothing_names_the_near_name(tmp_path: Path, mapping: dict[str, str], told: str) -> None:
    path = write(tmp_path, "in.csv", "id,loan\nA,5\n")
    with pytest.raises(InputError, match=told.replace("?", "\\?")):
        rows(path, mapping)


def test_columns_without_a_field_are_named(tmp_path: Path) -> None:
    source = run_input.read(write(tmp_path, "in.csv", "applicant_id,amount,grade\nA,5,B\n"), SCHEMA, {})
    assert source.ignored == ("grade",)
    assert source.rows[0].input == {"applicant_id": "A", "amount": 5}


def test_rows_at_fault_carry_their_line_and_the_others_go_on(tmp_path: Path) -> None:
    found = rows(write(tmp_path, "in.csv", 'applicant_id,amount\nA,5\nB\n\n"C\nD",6\nE,7,8\n'))
    assert [(row.line, row.error) for row in found if row.error] == [
        (3, "has 1 cells, the header has 2"),
        (7, "has 3 cells, the header has 2"),
    ]
    assert [row.input["applicant_id"] for row in found if row.input] == ["A", "C\nD"]


def test_jsonl_rows_at_fault_do_not_stop_the_others(tmp_path: Path) -> None:
    found = rows(write(tmp_path, "in.jsonl", '{"amount": 1.10}\n\n[1]\n{"amount": NaN}\n{"amount": 2}\n'))
    assert [row.line for row in found] == [1, 3, 4, 5]
    assert str(found[0].input["amount"]) == "1.10"
    assert found[1].error == "is not a JSON object"
    assert str(found[2].error).startswith("is not JSON")
    assert found[3].input == {"amount": 2}


@pytest.mark.parametrize(
    ("name", "content", "count"),
    [
        ("in.json", '{"amount": 1}', 1),
        ("in.json", '[{"amount": 1}, {"amount": 2}]', 2),
        ("in.json", '{"amount": 1}\n{"amount": 2}\n', 2),
        ("in.json", '\ufeff{"amount": 1}', 1),
        ("in.ndjson", '{"amount": "\u2028"}\r\n', 1),
    ],
)
def test_every_form_of_json_is_read(tmp_path: Path, name: str, content: str, count: int) -> None:
    found = rows(write(tmp_path, name, content))
    assert len(found) == count
    assert all(row.error is None for row in found)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("in.json", "", "not JSON"),
        ("in.json", "[]", "holds no input"),
        ("in.jsonl", "\n\n", "holds no input"),
        ("in.csv", "", "holds no input"),
        ("in.csv", "applicant_id,amount\n", "holds no input"),
        ("in.csv", "amount,amount\n1,2\n", "column 'amount' twice"),
        ("in.csv", b"applicant_id,amount\nA,1\nM\xfcller,2\n", "not UTF-8 at line 3"),
        ("in.json", "[" * 100_000, "not JSON"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(
    tmp_path: Path, name: str, content: str | bytes, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        rows(write(tmp_path, name, content))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.json cannot be read: No such file"):
        rows(tmp_path / "absent.json")


def test_limit_takes_the_first_rows_only(tmp_path: Path) -> None:
    assert len(rows(write(tmp_path, "in.jsonl", '{"a": 1}\n' * 10), limit=3)) == 3


def test_a_key_is_the_same_for_the_same_content_and_line_and_workflow(tmp_path: Path) -> None:
    """DA-8. The same file started again sends the same keys, whatever the file is called."""
    one = run_input.read(write(tmp_path, "a.jsonl", '{"a": 1}\n{"a": 1}\n'), SCHEMA, {})
    two = run_input.read(write(tmp_path, "b.jsonl", '{"a": 1}\n{"a": 1}\n'), SCHEMA, {})
    keys = [run_input.key_of(one, "loan", row) for row in one.rows]
    assert keys == [run_input.key_of(two, "loan", row) for row in two.rows]
    assert len(set(keys)) == 2, "equal rows on two lines are two runs"
    assert keys[0] != run_input.key_of(one, "other", one.rows[0])
    assert all(key.isascii() and len(key) <= 255 for key in keys)


def test_input_text_must_be_an_object() -> None:
    assert run_input.one('{"amount": 0.1}') == {"amount": Decimal("0.1")}
    for text in ("[1]", "7", "{", ""):
        with pytest.raises(InputError, match="--input"):
            run_input.one(text)


def test_input_may_be_in_a_file_or_on_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind an @, as curl has it; a file that is not there, or is no text, is told with its name."""
    file = write(tmp_path, "given.json", '{"a": "@b"}')
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 2}'))
    assert run_input.one(f"@{file}") == {"a": "@b"}
    assert run_input.one("-") == {"a": 2}
    with pytest.raises(InputError, match=r"--input @none\.json cannot be read: No such file"):
        run_input.one("@none.json")
    with pytest.raises(InputError, match="is no text"):
        run_input.one(f"@{write(tmp_path, 'odd.json', bytes([255]))}")
    with pytest.raises(InputError, match="or name its file: --input @FILE"):
        run_input.one("given.json")
