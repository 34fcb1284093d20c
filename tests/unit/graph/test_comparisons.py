"""Comparisons that are decided without CEL: always as CEL decides them, else left to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casework.errors import ExpressionError
from casework.graph import expressions
from casework.graph.comparisons import comparison

SIGNS = ("<", "<=", ">", ">=", "==", "!=")
PATHS = ("n", "input.upto", "input.a.b", "context.n", "int", "true", "missing", "input.missing", "n.x")
NUMBERS = ("0", "-1", "7", "007", "999999999999999999", "9223372036854775808", "1.5", "-0")
VALUES = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1]),
    st.booleans(),
    st.none(),
    st.text("ab0", max_size=2),
    st.floats(allow_nan=False),
)


@given(
    left=st.sampled_from(PATHS),
    sign=st.sampled_from(SIGNS),
    right=st.sampled_from((*PATHS, *NUMBERS)),
    blanks=st.sampled_from(("", " ", "  ")),
    values=st.tuples(VALUES, VALUES, VALUES, VALUES),
)
def test_what_is_decided_here_is_what_cel_says(
    left: str, sign: str, right: str, blanks: str, values: tuple[Any, Any, Any, Any]
) -> None:
    """AW-10. Blanks around the whole make it another source to the eye alone: round brackets leave it to CEL."""
    source = f"{blanks}{left}{blanks}{sign}{blanks}{right}{blanks}"
    n, upto, inner, named = values
    context = {"n": n, "input": {"upto": upto, "a": {"b": inner}}, "int": named, "review": {}, "errors": {}}
    quick = comparison(source)
    decided = None if quick is None else quick.decided(context)
    assert comparison(f"({source})") is None
    if decided is not None:
        assert expressions.evaluate(f"({source})", context) is decided


@pytest.mark.parametrize(("source", "answer"), [("n < 3", True), ("n >= input.upto", False), ("n != -1", True)])
def test_whole_numbers_are_compared_here(source: str, answer: bool) -> None:
    made = comparison(source)
    assert made is not None
    assert made.decided({"n": 2, "input": {"upto": 5}}) is answer


@pytest.mark.parametrize(
    "source",
    [
        "n",
        "n < 1.5",
        "n < 'a'",
        "n + 1 < 2",
        "n < m < o",
        "true == n",
        "1 < n",
        "n = 1",
        "n < " + "m" * 300,
        "n <\u00a03",
    ],
)
def test_all_else_is_for_cel(source: str) -> None:
    assert comparison(source) is None


def test_what_is_not_there_is_said_by_cel() -> None:
    """AW-10. An unknown name is an error, as ever."""
    with pytest.raises(ExpressionError, match="unknown name"):
        expressions.evaluate("n < nowhere.to", {"n": 1})
    with pytest.raises(ExpressionError, match="has\\(\\)"):
        expressions.evaluate("n < input.to", {"n": 1, "input": {}})
