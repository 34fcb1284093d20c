"""CEL over the context."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from casework.errors import ExpressionError
from casework.graph.expressions import check, evaluate, holds, value_of

CONTEXT: dict[str, Any] = {
    "input": {"amount": Decimal("7600.50"), "n": 5, "name": "Ann", "list": [1, 2, 3], "big": 2**70, "share": 0.1},
    "review": {},
    "answer": {"score": 665},
}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("input.n > 3", True),
        ("input.n > 3 && answer.score < 700", True),
        ("has(input.nothing)", False),
        ("has(input.nothing) && input.nothing > 1", False),
        ("input.list.exists(x, x > 2)", True),
        ("input.name in ['Ann', 'Bob']", True),
        ("size(input.list)", 3),
        ("context.answer.score", 665),
        ("'answer' in context", True),
        ("input.name.matches('^A.*')", True),
    ],
)
def test_expressions_read_the_context(source: str, value: Any) -> None:
    """AW-10. CEL over input, outputs and the whole context."""
    check(source, CONTEXT.keys() | {"context"}) if isinstance(value, bool) else None
    assert evaluate(source, CONTEXT) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("compare(input.amount, '7600.50') == 0", True),
        ("compare(input.amount, '7600.5') == 0", True),
        ("compare(input.amount, 7600) > 0", True),
        ("compare(input.share, '0.1') == 0", True),
        ("compare(input.big, '1180591620717411303424') == 0", True),
        ("compare(2, '10') < 0", True),
        ("input.amount == '7600.50'", True),
        ("double(input.amount) > 7600.4", True),
    ],
)
def test_numbers_with_digits_to_lose_are_text(source: str, value: bool) -> None:
    """AW-10. A Decimal is never a float unless the expression says so."""
    assert holds(source, CONTEXT) is value


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("inptu.n > 1", "unknown name"),
        ("inptu.n > 1", "Known names: answer, context, input, review"),
        ("input.nothing > 1", "Key not found"),
        ("input.amount > 1000", "compare"),
        ("input.n / 0 == 1", "divide by zero"),
        ("input.n >", "does not parse at line 1"),
        ("", "empty"),
        (" ", "empty"),
        ("true\x00", "NUL"),
        ("'\ud800' == ''", "half a character"),
        ("now() > 1", "unknown name"),
        ("compare(input.name, 1) > 0", "not 'Ann'"),
        ("compare(input.n, 1.5) > 0", "compare"),
        ("answer.score.real", "fails"),
    ],
)
def test_what_does_not_hold_is_an_error(source: str, says: str) -> None:
    """AW-10. Unknown names are errors, and so is everything else that gives no value."""
    with pytest.raises(ExpressionError, match=says):
        evaluate(source, CONTEXT)


@pytest.mark.parametrize("source", ["input.n", "input.name", "null", "input.list"])
def test_only_true_and_false_hold(source: str) -> None:
    """AW-7. Never a silent false."""
    with pytest.raises(ExpressionError, match="not true or false"):
        holds(source, CONTEXT)


@pytest.mark.parametrize("source", ["1 + 1", "'text'", "[1]", "size(input)"])
def test_admission_refuses_what_cannot_be_a_truth_value(source: str) -> None:
    """AW-5. The return type is checked before anything runs."""
    with pytest.raises(ExpressionError, match="not true or false"):
        check(source, ["input"])


def test_nul_and_times_reach_the_expression_as_text() -> None:
    context = {"input": {"text": "a\x00b", "at": datetime(2026, 1, 2, tzinfo=UTC)}}
    assert evaluate("size(input.text)", context) == 3
    assert evaluate("input.at", context) == "2026-01-02T00:00:00.000000+00:00"


ESCAPES = [
    "input.__class__",
    "input.n.__class__.__mro__",
    "''.__class__",
    "__import__('os')",
    "eval('1')",
    "input['__class__']",
    "type(input).mro()",
    "lambda: 1",
    "(" * 200 + "1" + ")" * 200,
    "[" * 100 + "]" * 100,
    " + ".join(["1"] * 400) + " > 0",
    "'" + "a" * 2000 + "' == ''",
    "[1]" + ".map(a, a)" * 9 + " == []",
    "[1]" + ".map(a, a + a)" * 30 + " == []",
    "input.list.all(a, input.list.all(b, input.list.all(c, input.list.all(d, nope))))",
    "1000000000 * 1000000000 * 1000000000 > 0",
    "google.protobuf.Any{}",
    "google.protobuf.Struct{fields: {'a': 1}}.fields",
    "input = 1",
    "input; input",
    "import os",
    "`input`",
]


@pytest.mark.parametrize("source", ESCAPES, ids=range(len(ESCAPES)))
def test_escape_attempts_are_refused(source: str) -> None:
    """AW-10. Attribute access, huge powers, deep nesting, long sources: an ExpressionError, and quickly."""
    began = time.monotonic()
    with pytest.raises(ExpressionError):
        holds(source, CONTEXT)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "source",
    [
        f"'{'a' * 300}!'.matches('^(a+)+$')",
        f"'{'a' * 300}'.matches('^(a|a)*b$')",
        f"'{'a' * 200}'.matches('(a?){{30}}a{{30}}b')",
    ],
)
def test_regular_expression_bombs_are_harmless(source: str) -> None:
    """AW-10. Regular expressions run in linear time."""
    began = time.monotonic()
    with contextlib.suppress(ExpressionError):
        assert evaluate(source, {}) is False
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("source", ["!" * 900 + "true", "-" * 900 + "1 > 0"])
def test_chains_of_signs_are_harmless(source: str) -> None:
    """AW-10. A long chain is evaluated, not stacked."""
    assert evaluate(source, {}) is True


def test_data_never_becomes_an_expression() -> None:
    """Design: data never becomes a template or an expression."""
    assert evaluate("input.text", {"input": {"text": "1 + 1"}}) == "1 + 1"


def test_loops_over_data_are_bounded() -> None:
    context = {"input": {"l": list(range(2000))}}
    nested = "input.l.all(a, input.l.all(b, input.l.all(c, a + b + c >= 0)))"
    began = time.monotonic()
    with pytest.raises(ExpressionError, match="Iteration budget"):
        evaluate(nested, context)
    assert time.monotonic() - began < 5


def test_importing_the_engine_does_not_load_the_expression_runtime() -> None:
    code = (
        "import sys, casework.graph.engine; assert not {'cel_expr_python', 'liquid', 'jsonschema'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_output_that_is_not_there_yet_can_be_asked_for() -> None:
    """AW-10. An unknown name is an error; `has(context.name)` asks."""
    assert evaluate("has(context.answer) && context.answer.score > 1", {"input": {}}) is False
    with pytest.raises(ExpressionError, match="unknown name"):
        evaluate("answer.score > 1", {"input": {}})


@pytest.mark.parametrize(
    "source",
    [
        "[size(input.l.map(x, input.l.map(y, input.s + input.s + input.s)))]",
        "input.l.map(x, input.l.map(y, input.s + input.s)).size() > 0",
        "[input.s].map(a, a+a+a+a+a+a+a+a+a).map(b, b+b+b+b+b+b+b+b+b).map(c, c+c+c+c+c+c+c+c+c)",
    ],
)
def test_what_would_take_all_memory_is_refused_at_once(source: str) -> None:
    """AW-10. Joining long texts in nested macros is bounded by what it could come to; the runtime bounds no memory."""
    context = {"input": {"l": list(range(170)), "s": "x" * 30_000}, "review": {}, "errors": {}}
    with pytest.raises(ExpressionError, match="Let a tool compute it"):
        evaluate(source, context)


def test_texts_may_be_joined_in_a_macro() -> None:
    """AW-10. What stays small is computed: one pass over a list, also of long texts."""
    context = {
        "input": {"l": [f"d{at}" for at in range(1000)], "n": [1, 2], "s": "x" * 20_000},
        "review": {},
        "errors": {},
    }
    assert value_of("input.l.map(x, 'docs/' + x)", context)[:2] == ["docs/d0", "docs/d1"]
    assert value_of("input.n.map(x, x + 1)", context) == [2, 3]


@pytest.mark.parametrize(
    "source",
    [
        "[1.0 / 0.0]",
        "[0.0 / 0.0]",
        "double('nan')",
        "{'a': [b'x']}",
        "{1: 2}",
        "type(1)",
        "duration('1h')",
        "'a\\u0000'",
    ],
)
def test_what_json_does_not_have_is_no_value(source: str) -> None:
    """AW-10. An infinity would be a text in the row and a number in the run; it is refused where it arises."""
    with pytest.raises(ExpressionError, match="gives what JSON does not have"):
        value_of(source, {"input": {}})


def test_an_instant_is_its_text() -> None:
    assert value_of("timestamp('2026-01-01T00:00:00Z')", {}) == "2026-01-01T00:00:00.000000+00:00"


def test_an_unknown_name_has_the_near_one() -> None:
    """AW-2."""
    with pytest.raises(ExpressionError, match=r"Did you mean 'input'\?"):
        check("inptu.amount > 1", ("input", "review"))
