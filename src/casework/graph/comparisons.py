"""Comparisons of two whole numbers, decided without CEL: what loops ask at every round, at a tenth of the price.

`count < input.limit` is such a one. It is decided here only where the answer is beyond doubt: both sides are there, and
are whole numbers as CEL has them. All else is left to CEL, which gives the same answer here, and says what is wrong.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

INT64 = range(-(2**63), 2**63)
"""Whole numbers that CEL knows as such."""

_PATH = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,7}"
_COMPARISON = re.compile(
    rf"[ ]*({_PATH})[ ]*(<=|>=|==|!=|<|>)[ ]*(?:({_PATH})|(-?(?:0|[1-9]\d{{0,17}})))[ ]*", re.ASCII
)
_ASKS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_TAKEN = frozenset(
    re.findall(
        r"\w+",
        """as bool break bytes const context continue double duration dyn else false for function google if import in
        int let list loop map namespace null null_type optional_type package return string timestamp true type uint var
        void while""",
    )
)
"""Words that mean something else in CEL, or may; and `context`, which is no member of itself."""


class Comparison(NamedTuple):
    """Two sides, each a path into the context or a number."""

    left: tuple[str, ...]
    asks: Callable[[int, int], bool]
    right: tuple[str, ...] | int

    def decided(self, context: Mapping[str, Any]) -> bool | None:
        """Whether it holds over the context; None where that is for CEL to say."""
        left = _at(self.left, context)
        right = self.right if type(self.right) is int else _at(self.right, context)
        return None if left is None or right is None else self.asks(left, right)


@lru_cache(maxsize=1024)
def comparison(source: str) -> Comparison | None:
    """What the expression compares; None where it is no comparison of that kind."""
    match = _COMPARISON.fullmatch(source)
    if match is None or len(source) > 200:
        return None
    left, sign, right, number = match.groups()
    paths = [tuple(path.split(".")) for path in (left, right) if path is not None]
    if any(name in _TAKEN for path in paths for name in path):
        return None
    return Comparison(paths[0], _ASKS[sign], paths[1] if number is None else int(number))


def _at(path: Any, context: Any) -> int | None:
    found = context
    for name in path:
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found if type(found) is int and found in INT64 else None
