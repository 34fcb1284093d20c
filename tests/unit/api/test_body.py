"""Bodies: exact numbers, and what is refused at the door."""

from decimal import Decimal
from typing import Any

import pytest

from casework.api.body import PlainResponse, parse
from casework.errors import InputError
from casework.values import loads


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


@pytest.mark.parametrize("number", ["1e99999999999999999999", "-1e-99999999999999999999"])
def test_a_number_beyond_every_range_is_refused(number: str) -> None:
    with pytest.raises(InputError, match="out of the range of numbers"):
        parse(f'{{"a": {number}}}'.encode())


@pytest.mark.parametrize("body", [b'{"k": 1, "k": 2}', b'{"a": [{"k": 1, "k": 1}]}', b'{"k": 1, "\\u006b": 2}'])
def test_a_key_that_stands_twice_is_refused_with_its_name(body: bytes) -> None:
    with pytest.raises(InputError, match="the key 'k' twice"):
        parse(body)


def test_an_answer_is_written_whatever_was_stored() -> None:
    deep: Any = "bottom"
    for _ in range(99):
        deep = {"n": [deep]}
    answer = PlainResponse({"items": [{"input": deep, "odd": object(), "cost": Decimal("1.10")}]})
    written = loads(bytes(answer.body))
    (item,) = written["items"]
    assert (str(item["cost"]), item["odd"]) == ("1.10", "(not shown: object)")
    assert "(not shown: nested too deeply)" in str(item["input"])
