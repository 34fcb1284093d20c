"""Printing for people: one line a row, whatever the text holds."""

from decimal import Decimal

import pytest

from casework.cli import output


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        ("two\nlines\t here", "two lines here"),
        ("x" * 100, "x" * 59 + "…"),
        ({"a": 1}, '{"a":1}'),
        ("\x1b[31mred\x07\x9b", "\ufffd[31mred\ufffd\ufffd"),
        ("\u202edesrever\u2066", "\ufffddesrever\ufffd"),
    ],
)
def test_a_cell_is_one_bounded_line_without_control_characters(value: object, shown: str) -> None:
    assert output.cell(value) == shown


def test_a_table_has_headings_and_columns(capsys: pytest.CaptureFixture[str]) -> None:
    output.table([{"a": "x", "b": 1}, {"a": "longer"}], {"a": "A", "b": "B"}, "none")
    assert capsys.readouterr().out == "A       B\nx       1\nlonger\n"
    output.table([], {"a": "A"}, "none")
    assert capsys.readouterr().out == "none\n"


PATHS = [f"panel.1/{'deeper.1/' * 9}parse_stream_response.{n}" for n in (1, 2)]
ROWS = [{"path": path, "error": "e" * 100} for path in PATHS]
COLUMNS = {"path": "STEP", "error": "ERROR"}


def test_a_table_for_a_program_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(ROWS, COLUMNS, "none")
    assert capsys.readouterr().out.splitlines()[1:] == [f"{path}  {'e' * 100}" for path in PATHS]


def test_on_a_terminal_a_path_keeps_its_end_and_an_error_its_begin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    output.table(ROWS, COLUMNS, "none")
    shown = [line.split("  ") for line in capsys.readouterr().out.splitlines()[1:]]
    assert [path[:10] for path, _ in shown] == ["…/deeper.1"] * 2
    assert [path[-24:] for path, _ in shown] == ["/parse_stream_response.1", "/parse_stream_response.2"]
    assert all(len(path) <= 60 and error == "e" * 59 + "…" for path, error in shown)
    monkeypatch.setenv("COLUMNS", "200")
    output.table(ROWS, COLUMNS, "none")
    assert [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()[1:]] == PATHS


def test_a_path_of_one_long_name_keeps_its_end() -> None:
    assert output.path_cell("x" * 100 + ".2") == "…" + "x" * 57 + ".2"
    assert output.path_cell("short.1/path.2") == "short.1/path.2"
    assert output.path_cell(None) == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"score": 665, "verified": True, "ratio": None}, "score 665, verified yes, ratio none"),
        ({"job": {"title": "Site\nengineer", "years": Decimal("4.50")}}, "job (title Site engineer, years 4.50)"),
        ([{"rule": "a"}, {"rule": "b"}], "(rule a); (rule b)"),
        ({"missing": [], "note": ""}, "missing none, note none"),
        ({}, "none"),
        (Decimal("1E+3"), "1000"),
    ],
)
def test_a_value_is_told_in_words(value: object, shown: str) -> None:
    assert output.words(value) == shown


def test_the_verdict_comes_first() -> None:
    assert output.gist({"rationale": "thin file", "recommendation": "refer"}) == "refer: thin file"
    assert output.gist("yes") == "yes"
    assert output.gist({"question": "Pay 5?", "transaction": "t", "status": "IN_WORK"}) == "Pay 5?"
    assert output.facts({"error": None, "name": "x"}) == "name x"
    assert output.facts(None) == ""
