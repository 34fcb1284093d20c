"""Arithmetic of templates: decimal, exact where a result has an exact form, bounded in digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, DivisionByZero, InvalidOperation
from functools import wraps
from typing import Any

from liquid.exceptions import FilterArgumentError

from casework.graph.words import shown

MAX_DIGITS = 60
"""Most digits of a number that arithmetic takes or gives."""

_DECIMAL = Context(prec=MAX_DIGITS)


class RefusedError(FilterArgumentError):
    """A filter was given what it does not take; the text is ours, and not the library's."""

    def __init__(self, said: str) -> None:
        super().__init__(said, token=None)


class Number(Decimal):
    """A Decimal that is written without an exponent, and compared with a literal like 0.36 by its digits."""

    def __str__(self) -> str:
        return format(self, "f")

    def __eq__(self, other: object) -> bool:
        return super().__eq__(_exact(other))

    def __lt__(self, other: Any) -> bool:
        return super().__lt__(_exact(other))

    def __le__(self, other: Any) -> bool:
        return super().__le__(_exact(other))

    def __gt__(self, other: Any) -> bool:
        return super().__gt__(_exact(other))

    def __ge__(self, other: Any) -> bool:
        return super().__ge__(_exact(other))

    __hash__ = Decimal.__hash__


def _exact(value: Any) -> Any:
    return Decimal(repr(value)) if isinstance(value, float) else value


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        raise RefusedError(f"expected a number, found {shown(value)}")
    text = format(value, "x") if isinstance(value, int) else str(value)
    if len(text) > MAX_DIGITS:
        raise RefusedError(f"a number has more than {MAX_DIGITS} digits")
    try:
        number = _DECIMAL.create_decimal(value if isinstance(value, int) else text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or abs(number.adjusted()) > MAX_DIGITS:
        raise RefusedError(f"expected a number of at most {MAX_DIGITS} digits, found {shown(value)}")
    return number


def _arithmetic(operation: Callable[..., Decimal | int]) -> Callable[..., Any]:
    @wraps(operation)
    def computed(*args: Any) -> Any:
        whole = all(isinstance(arg, int) for arg in args)
        try:
            made = operation(*(_number(arg) for arg in args))
        except (DivisionByZero, InvalidOperation, ZeroDivisionError, TypeError):
            raise RefusedError(f"there is no such result for {' and '.join(map(shown, args))}") from None
        number = _number(made)
        return int(number) if whole or isinstance(made, int) else Number(number)

    return computed


def _divide(left: Decimal, right: Decimal) -> Decimal | int:
    whole = left == left.to_integral_value() and right == right.to_integral_value()
    if whole and left.as_tuple().exponent == 0 == right.as_tuple().exponent:
        return math.floor(left / right) if right else int(left // right)
    return _DECIMAL.divide(left, right)


def _round(number: Decimal, digits: Decimal = Decimal(0)) -> Decimal | int:
    places = min(max(int(digits), 0), MAX_DIGITS)
    rounded = number.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP, context=_DECIMAL)
    return rounded if places else int(rounded)


FILTERS: dict[str, Callable[..., Any]] = {
    "abs": _arithmetic(abs),
    "at_least": _arithmetic(max),
    "at_most": _arithmetic(min),
    "ceil": _arithmetic(math.ceil),
    "divided_by": _arithmetic(_divide),
    "floor": _arithmetic(math.floor),
    "minus": _arithmetic(_DECIMAL.subtract),
    "modulo": _arithmetic(_DECIMAL.remainder),
    "plus": _arithmetic(_DECIMAL.add),
    "round": _arithmetic(_round),
    "times": _arithmetic(_DECIMAL.multiply),
}
