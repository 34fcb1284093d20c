"""Bodies: exact numbers, and what is refused at the door."""

from decimal import Decimal

import pytest

from casework.api.body import parse
from casework.errors import InputError


def test_a_fraction_keeps_its_digits() -> None:
    assert str(parse(b'{"a": 1000.10}')["a"]) == "1000.10"
    assert parse(b'{"a": 0.1}') == {"a": Decimal("0.1")}


@pytest.mark.parametrize("body", [b"{", b"NaN", b'{"a": Infinity}', b"\xff\xfe", b"[" * 200_000, b"'a'"])
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(InputError, match="body"):
        parse(body)


@pytest.mark.parametrize("number", ["1e1000", "-1e999999999", "1e-5000", "9" * 1001])
def test_a_number_that_no_column_holds_is_refused_with_its_field(number: str) -> None:
    with pytest.raises(InputError, match=r"input\.x\[1\] is a number of more than 1000 digits"):
        parse(f'{{"input": {{"x": [1, {number}]}}}}'.encode())
