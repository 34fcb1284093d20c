"""Printing for people: one line a row, whatever the text holds."""

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
    ],
)
def test_a_cell_is_one_bounded_line_without_control_characters(value: object, shown: str) -> None:
    assert output.cell(value) == shown


def test_a_table_has_headings_and_columns(capsys: pytest.CaptureFixture[str]) -> None:
    output.table([{"a": "x", "b": 1}, {"a": "longer"}], {"a": "A", "b": "B"}, "none")
    assert capsys.readouterr().out == "A       B\nx       1\nlonger\n"
    output.table([], {"a": "A"}, "none")
    assert capsys.readouterr().out == "none\n"
