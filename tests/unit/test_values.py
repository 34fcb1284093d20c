"""One rule for values that cross a boundary."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
import simplejson
from hypothesis import given
from hypothesis import strategies as st

from casework import values
from casework.errors import UnserialisableError

plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.decimals(allow_nan=False, allow_infinity=False, places=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    when: datetime


def test_what_is_too_large_is_told_as_its_kind_and_size() -> None:
    """No word of Python's types, and a remedy that fits."""
    with pytest.raises(UnserialisableError) as caught:
        values.bounded({"a": "x" * 100}, "input", limit=50)
    assert str(caught.value) == (
        "input cannot be stored: an object of 108 bytes, over the limit of 50. "
        "Make it smaller, or keep it elsewhere and say where."
    )


def test_a_decimal_keeps_its_digits_in_both_directions() -> None:
    assert values.dumps({"a": Decimal("2400.00"), "b": Decimal("0.1")}) == '{"a":2400.00,"b":0.1}'
    read = values.loads('{"a": 2400.00, "b": 0.1, "n": 12345678901234567890.123456789}')
    assert [str(read[key]) for key in "abn"] == ["2400.00", "0.1", "12345678901234567890.123456789"]


@given(plain_values)
def test_what_is_written_is_read_back_the_same(value: Any) -> None:
    cleaned = values.clean(value).value
    assert values.loads(values.dumps(value)) == cleaned


ODD: list[Any] = [
    *("\u2028", "\u2029", "\x7f", "\u20ac", "9" * 4000, '"\\'),
    *(10**3611, 10**3620, -(10**3999), (1 << 12000) - 1, 1 << 12000, 10**4500),
    *(1e308, 5e-324, -0.0, Decimal("-0.0"), Decimal("1E+3999"), Decimal("1E-20000"), True, Colour.RED),
]


@given(plain_values)
def test_the_quick_way_to_write_gives_the_same_text(value: Any) -> None:
    for each in (value, {"odd": ODD, "value": value}):
        made = values.clean(values.plain(each)).value
        exact = simplejson.dumps(
            made, use_decimal=True, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        assert values.dumps(each) == exact
    for odd in ODD:
        assert values.dumps([odd]) == values.dumps([odd, Decimal("0.5")])[:-5] + "]"


@given(plain_values)
def test_a_value_that_would_be_changed_is_never_written_as_it_is(value: Any) -> None:
    """The text of an unchanged value is its canonical JSON, and one of which something is replaced has none."""
    text = values.unchanged(value)
    assert text is None or (text == values.dumps(value) and values.clean(value).replaced == 0)


@pytest.mark.parametrize("value", ["a\x00b", {"\ud800": 1}, float("nan"), [10**5000], {"d": Decimal("NaN")}, object()])
def test_what_has_no_text_as_it_is(value: Any) -> None:
    assert values.unchanged([value]) is None
    assert values.unchanged({"d": Decimal("1.50"), "n": None}) == '{"d":1.50,"n":null}'


@given(plain_values)
def test_cleaning_twice_changes_nothing_more(value: Any) -> None:
    once = values.clean(value)
    assert values.clean(once.value) == values.Cleaned(once.value, 0)


def test_what_postgresql_cannot_hold_is_replaced_and_counted() -> None:
    found = values.clean({"a\x00": ["\ud800x", float("nan"), Decimal("Infinity"), float("-inf")]})
    assert found.value == {"a\u2400": ["\ufffdx", "NaN", "Infinity", "-Infinity"]}
    assert found.replaced == 5


def test_two_keys_that_clean_to_one_are_both_kept() -> None:
    found = values.clean({"a\x00": 1, "a\u2400": 2})
    assert sorted(found.value.values()) == [1, 2]


def test_datetimes_are_instants_in_utc() -> None:
    zone = timezone(timedelta(hours=2))
    when = datetime(2026, 3, 29, 2, 30, tzinfo=zone)
    assert values.plain(Point(1, when)) == {"x": 1, "when": "2026-03-29T00:30:00.000000+00:00"}
    assert values.plain(date(2026, 3, 29)) == "2026-03-29"
    with pytest.raises(UnserialisableError, match=r"when.*without time zone"):
        values.plain(Point(1, when.replace(tzinfo=None)), "point")


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_a_datetime_that_utc_does_not_hold_is_named(text: str) -> None:
    with pytest.raises(UnserialisableError, match=r"when.*years 1 to 9999"):
        values.plain(Point(1, datetime.fromisoformat(text)), "point")


def test_a_value_without_plain_form_is_named() -> None:
    with pytest.raises(UnserialisableError, match=r"result\.a\[1\] cannot be stored: object"):
        values.plain({"a": [1, object()]}, "result")
    with pytest.raises(UnserialisableError, match="a key"):
        values.plain({1: 2})


def test_endless_nesting_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(UnserialisableError, match="nesting"):
        values.plain(loop)


def test_plain_forms() -> None:
    made = values.plain({"u": UUID(int=1), "e": Colour.RED, Colour.RED: (1, 2), "s": {2, 1}, "t": datetime.now(UTC)})
    assert made["u"] == "00000000-0000-0000-0000-000000000001"
    assert (made["e"], made["red"], made["s"]) == ("red", [1, 2], [1, 2])


def test_equal_content_has_one_hash() -> None:
    assert values.content_hash({"a": 1, "b": 2}) == values.content_hash({"b": 2, "a": 1})
    assert values.content_hash({"a": Decimal("1.0")}) != values.content_hash({"a": Decimal("1.00")})


@pytest.mark.parametrize("text", ["NaN", "Infinity", "{", "", "[1,]", '{"a":-Infinity}'])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|JSON|double quotes|Illegal trailing"):
        values.loads(text)
