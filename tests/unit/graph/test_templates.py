"""Liquid over the context."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from casework.errors import ExpressionError
from casework.graph.templates import check, check_all, render, render_all

CONTEXT: dict[str, Any] = {
    "input": {
        "amount": Decimal("7600.50"),
        "big": Decimal("1E+3"),
        "share": 0.1,
        "n": 5,
        "name": "Ann",
        "list": [1, Decimal("2.50"), "x"],
        "items": [{"k": "a"}, {"k": "b"}],
        "yes": True,
        "none": None,
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "evil": "{{ input.name }} {% for i in (1..9) %}x{% endfor %}",
    },
    "review": {},
}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Assess {{ input.name }}.", "Assess Ann."),
        ("{{ input.amount }} {{ input.big }} {{ input.share }}", "7600.50 1000 0.1"),
        ("{{ input.list }}", '[1,2.50,"x"]'),
        ("{{ input.items[1] }}", '{"k":"b"}'),
        ("{{ input.items | map: 'k' | join: ', ' }}", "a, b"),
        ("{{ input.yes }}{{ input.none }}", "true"),
        ("{{ input.at }}", "2026-01-02T00:00:00+00:00"),
        ("{{ input.amount | times: 2 }} {{ input.amount | plus: 0.01 }}", "15201.00 7600.51"),
        ("{{ 7 | divided_by: 2 }} {{ 7 | divided_by: 2.0 }} {{ 10 | modulo: 4 }}", "3 3.5 2"),
        ("{{ input.amount | round }} {{ 2.345 | round: 2 }} {{ 2.1 | ceil }} {{ 2.9 | floor }}", "7601 2.35 3 2"),
        ("{{ -3 | abs }} {{ 4 | at_most: 3 }} {{ 4 | at_least: 5 }} {{ 4 | minus: 1 }}", "3 3 5 3"),
        ("{% if input.amount > 7600.4 %}above{% endif %}", "above"),
        ("{% if input.amount >= 7600.5 and input.share == 0.1 %}exact{% endif %}", "exact"),
        ("{% for item in input.items %}{{ forloop.index }}{{ item.k }} {% endfor %}", "1a 2b "),
        ("{{ input.nothing | default: 'none' }}", "none"),
        ("{% unless input contains 'nothing' %}absent{% endunless %}", "absent"),
        ("{% assign x = input.n | plus: 1 %}{{ x }}", "6"),
        ("{% capture c %}<{{ input.name }}>{% endcapture %}{{ c }}", "<Ann>"),
        ("{{ context.input.n }}", "5"),
        ("{{ input.items | json }}", '[{"k":"a"},{"k":"b"}]'),
        ("{{ input.name | upcase | append: '!' | prepend: '¡' }}", "¡ANN!"),
        ("{% raw %}{{ input.name }}{% endraw %}{# #}", "{{ input.name }}{# #}"),
        ("", ""),
        ("no markers } { %", "no markers } { %"),
    ],
)
def test_templates_read_the_context(source: str, text: str) -> None:
    """AW-10. Numbers keep their digits, times are ISO-8601, structures are JSON."""
    check(source, [*CONTEXT, "context"])
    assert render(source, CONTEXT) == text


def test_data_never_becomes_a_template() -> None:
    """AW-10. Injected markers are written out as they are: single pass."""
    assert render("{{ input.evil }}", CONTEXT) == CONTEXT["input"]["evil"]
    assert render("{% assign x = input.evil %}{{ x | append: '' }}", CONTEXT) == CONTEXT["input"]["evil"]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{{ inptu.n }}", "inptu"),
        ("{{ input.nothing }}", "nothing"),
        ("line\n{{ input.nothing }}", "at line 2"),
        ("{% if input.nothing %}x{% endif %}", "nothing"),
        ("{{ input.name.nothing }}", "nothing"),
        ("{{ input.list[9] }}", "index out of range"),
        ("{{ input.n | nofilter }}", "unknown filter 'nofilter'"),
        ("{% if input.n %}", "endif"),
        ("{{ input.n ", "does not parse"),
        ("{{ input.n | divided_by: 0 }}", "no such result"),
        ("{{ input.name | plus: 1 }}", "expected a number"),
        ("{{ input.yes | plus: 1 }}", "expected a number"),
        ("{{ input.nothing | upcase }}", "nothing"),
        ("a\x00b", "NUL"),
        ("x" * 20_001, "20001 characters"),
    ],
)
def test_what_does_not_hold_is_an_error(source: str, says: str) -> None:
    """AW-10. Strict: a name that is not there is an error."""
    with pytest.raises(ExpressionError, match=says):
        render(source, CONTEXT)


def test_admission_lists_the_known_names() -> None:
    """AW-5. A template's unknown name is refused before anything runs."""
    with pytest.raises(ExpressionError, match=r"unknown name 'answr'. Known names: answer, input"):
        check("{{ answr.x }}", ["input", "answer"])
    check("{% assign own = 1 %}{{ own }}{% for i in input.list %}{{ i }}{% endfor %}", ["input"])


def test_arguments_keep_their_types() -> None:
    """AW-7. A text that is one path gives the value itself, any other is rendered."""
    arguments = {
        "amount": "{{ input.amount }}",
        "who": "Ms {{ input.name }}",
        "deep": [{"l": "{{input.list[1]}}"}],
        "k": 3,
    }
    check_all(arguments, ["input"])
    assert render_all(arguments, CONTEXT) == {
        "amount": Decimal("7600.50"),
        "who": "Ms Ann",
        "deep": [{"l": Decimal("2.50")}],
        "k": 3,
    }


@pytest.mark.parametrize("text", ["{{ input.nothing }}", "{{ nothing }}", "{{ input.list[7] }}", "{{ input.n.x }}"])
def test_an_argument_that_is_not_there_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError, match="there is no"):
        render_all({"a": text}, CONTEXT)


def test_arguments_are_checked_at_admission() -> None:
    with pytest.raises(ExpressionError, match="unknown name 'nope'"):
        check_all({"a": [{"b": "{{ nope }}"}]}, ["input"])


DOUBLE = "{% assign x = 'aaaaaaaaaa' %}{% for i in (1..60) %}{% assign x = x | append: x %}{% endfor %}"
ESCAPES = [
    "{{ input.__class__ }}",
    "{{ input.name.__class__.__mro__ }}",
    "{{ input['__class__'] }}",
    "{{ input.list.__len__ }}",
    "{{ ''.__class__ }}",
    "{{ input.items.append }}",
    "{{ input.name.format }}",
    '{{ ["__builtins__"] }}',
    "{{ self }}",
    "{{ now }}",
    "{{ today }}",
    "{% if false %}{% assign now = 1 %}{% endif %}{{ now }}",
    "{{ 'now' | date: '%Y' }}",
    "{{ input.name | date: '%1000000000d' }}",
    "{% include 'passwd' %}",
    "{% include '/etc/passwd' %}",
    "{% render 'x' %}",
    "{% extends 'x' %}",
    "{% block x %}{% endblock %}",
    "{% macro x %}{% endmacro %}",
    "{% liquid echo 1 %}",
    "{% echo 1 %}",
    "{% tablerow i in (1..9) %}{% endtablerow %}",
    "{% increment x %}",
    "{% python %}",
    "{{ 2 | pow: 100000 }}",
    "{{ 9 | times: 9 | times: 'x' }}",
    "{% assign x = 9 %}{% for i in (1..100) %}{% assign x = x | times: x %}{% endfor %}",
    "{{ '1e999999999' | plus: 1 }}",
    "{{ '" + "9" * 5000 + "' | plus: 1 }}",
    DOUBLE,
    "{% for i in (1..1000) %}{% for j in (1..1000) %}x{% endfor %}{% endfor %}",
    "{% for i in (1..1000000000000) %}x{% endfor %}",
    "{% for i in (1..1000000000000) offset: 999999999990 %}x{% endfor %}",
    "{% for i in (1..1000000000000) reversed %}x{% endfor %}",
    "{{ (1..1000000000000) | join }}",
    "{{ (1..1000000000000) | reverse | first }}",
    "{{ (1..1000000000000) }}{{ (1..2) | size }}",
    "{% if (1..1000000000000) contains 'x' %}{% endif %}",
    "{% assign r = (1..1000000000000) %}{{ r | sort }}",
    "{% case (1..1000000000000) %}{% when 1 %}{% endcase %}",
    "{% assign a = '" + "a" * 9000 + "' %}{{ a | replace: 'a', a }}",
    "{% assign a = '" + "a," * 4000 + "' %}{{ a | split: ',' | join: a }}",
    "{% assign a = '" + "a" * 9000 + "' %}{% for i in (1..900) %}{{ a }}{% endfor %}",
    "{% assign a = '" + "a" * 9000 + "' %}{% for i in (1..1000) %}{% assign b = a | upcase | downcase %}{% endfor %}",
    "{% if " * 200 + "true" + " %}{% endif %}" * 200,
    "{% if true %}" * 100 + "{% endif %}" * 100,
    "{{ " + "input[" * 2000 + "1" + "]" * 2000 + " }}",
    "{% if " + " and ".join(["true"] * 3000) + " %}x{% endif %}{{ nope }}",
    "{{ input.name | map: 'x' }}",
    "{% for i in input.list %}{% cycle i %}{% endfor %}",
    "{{ input.name | base64_decode }}",
    "{{ input.name | safe }}",
]


@pytest.mark.parametrize("source", ESCAPES, ids=range(len(ESCAPES)))
def test_escape_attempts_are_refused(source: str) -> None:
    """AW-10. Attributes, files, clocks, huge numbers, loops, bombs: an ExpressionError, and quickly."""
    began = time.monotonic()
    with pytest.raises(ExpressionError):
        render(source, CONTEXT)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "source",
    [
        "{%" * 9000,
        "{{" * 9000,
        "{{" * 9000 + "}}",
        "{{ x }}" * 2000 + "{{ " * 19,
        "{{}}" * 5000,
        "{%" + " " * 9000 + "raw" + " " * 9000 + "%}",
        "{{ x" + " x" * 9000,
        "{% raw %}" * 2000,
        "{% comment %}" * 1500,
        "{" * 20_000,
        "{% if x" + " " * 19_000,
        "{{ 'a" * 3000,
    ],
    ids=range(12),
)
def test_malformed_markers_take_no_time(source: str) -> None:
    """AW-10. No source of allowed length makes the reader slow."""
    began = time.monotonic()
    with contextlib.suppress(ExpressionError):
        render(source, CONTEXT)
    assert time.monotonic() - began < 3


def test_a_long_list_in_the_context_is_rendered_whole() -> None:
    """A prompt may hold much evidence; the output limit is a guard, not a budget."""
    context = {"input": {"l": ["x" * 100] * 500}}
    assert len(render("{{ input.l | json }}", context)) > 50_000


def test_an_unknown_name_has_the_near_one() -> None:
    """AW-2. Names and filters."""
    with pytest.raises(ExpressionError, match=r"Did you mean 'input'\?"):
        check("{{ inptu.amount }}", ("input", "review"))
    with pytest.raises(ExpressionError, match=r"Did you mean 'upcase'\?"):
        check("{{ input.name | upcas }}", ("input",))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{{ input.l | sort: 3 }}", "sort cannot be used on [1,2] with 3"),
        ("{{ input.t | append }}", "append cannot be used on 'abc'"),
        ("{{ input.t | upcase: 3 }}", "upcase cannot be used on 'abc' with 3"),
        ("{{ input.t | truncate: input.o }}", "truncate cannot be used on 'abc' with {\"a\":null}"),
        ("{{ input.t | slice: 'a' }}", "slice cannot be used on 'abc' with 'a'"),
        ("{{ input.l | concat: 3 }}", "concat cannot be used on [1,2] with 3"),
        ("{{ input.o | plus: 1 }}", 'expected a number, found {"a":null}'),
        ("{{ input.n | plus: 1 }}", "expected a number, found null"),
        ("{{ 1 | round: true }}", "expected a number, found true"),
        ("{{ 1 | divided_by: 0 }}", "there is no such result for 1 and 0"),
        ("{% if input.o > 3 %}x{% endif %}", "not supported between a number and an object"),
        ("{% for a in input.l limit: 'x' %}{{ a }}{% endfor %}", "expected an integer, found a text"),
    ],
)
def test_a_failure_is_told_without_words_of_python(source: str, says: str) -> None:
    """AW-10."""
    context = {"input": {"l": [1, 2], "t": "abc", "o": {"a": None}, "n": None}}
    with pytest.raises(ExpressionError) as caught:
        render(source, context)
    assert says in str(caught.value)


def test_what_map_does_not_find_is_null() -> None:
    assert render("{{ input | map: 'a' | json }}", {"input": [{"a": 1}, {"b": 2}]}) == "[1,null]"
