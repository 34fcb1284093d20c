"""Values as the views show them: one order of keys, one word for nothing, texts with their lines, instants in UTC."""

from decimal import Decimal

import pytest

from casework.cli import output, parts_view
from casework.values import Plain

EVALUATION = {
    "rules": [
        {"rule": "minimum_score", "comparison": ">=", "threshold": 700, "actual": 665, "result": "fail", "note": None}
    ],
    "policy_name": "personal-loans",
    "version": 1,
    "source": "governed",
    "recommendation": "refer",
    "rationale": "Too low.",
}


@pytest.mark.parametrize("value", ["2026-11-30T11:41:22.123+00:00", "2026-11-30T12:41:22+01:00"])
def test_an_instant_has_its_zone(value: str) -> None:
    assert output.when(value) == "2026-11-30 11:41:22Z"
    assert output.when(None) == ""


@pytest.mark.parametrize("value", [None, "", "  \n", [], {}])
def test_there_is_one_word_for_nothing(value: object) -> None:
    assert parts_view.told(value) == "none"
    assert parts_view.told({"missing": value}) == "missing none"
    assert list(parts_view.lines_of(value)) == ["none"]


def test_keys_have_one_order_with_the_verdict_first() -> None:
    one = {"score": Decimal("6.50"), "ok": True, "rationale": "thin", "recommendation": "refer"}
    told = "recommendation refer, rationale thin, ok yes, score 6.50"
    assert parts_view.told(one) == parts_view.told(dict(reversed(one.items()))) == told


def test_a_text_keeps_its_lines_and_loses_what_steers_a_terminal() -> None:
    value = {"letter": "Dear\tAda,\r\n\r\nyes.\x1b[2J", "n": 1}
    assert list(parts_view.lines_of(value)) == ["letter: Dear  Ada,", "  ", "  yes.\ufffd[2J", "n: 1"]
    assert parts_view.told("a\u2028b\nc") == "a b c"


def test_a_policy_is_drawn_as_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert parts_view.is_evaluation(EVALUATION)
    others: list[Plain] = [{}, [], None, {"rules": "x", "recommendation": "y"}]
    assert not any(parts_view.is_evaluation(each) for each in others)
    assert parts_view.policy_named(EVALUATION) == "personal-loans v1 from governed. It says refer. Too low."
    parts_view.print_rules(EVALUATION, "      ")
    heading, rule = capsys.readouterr().out.splitlines()
    assert heading.startswith("      RULE")
    assert rule.split() == ["minimum_score", ">=", "700", "665", "fail"]
    parts_view.print_rules({**EVALUATION, "rules": []})
    assert capsys.readouterr().out == ""
