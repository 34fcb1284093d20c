"""`casework runs start FILE --local`: a run in this process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import casework.examples.loan_underwriting as loan
from casework.cli import exits
from casework.cli.local_answers import Answers
from casework.cli.root import code_of_run
from casework.graph.commands import Decided, Wait
from casework.local.outside import Question

MANIFEST = str(Path(loan.__file__).parent / "manifests" / "loan-underwriting.yaml")
APP = "casework.examples.loan_underwriting.application:app"
INPUT = '{"applicant_id": "APP-001", "amount": 7600, "purpose": "debt_consolidation"}'
PAY = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: pay}
spec:
  initialNode: wait
  nodes:
    - {id: wait, type: WAIT, signal: paid, outputKey: payment}
    - {id: check, type: PARALLEL, outputKey: checks, branches: [
        {id: first, type: HUMAN_APPROVAL, decisions: [{name: good}, {name: bad}]},
        {id: second, type: HUMAN_APPROVAL, decisions: [{name: good}, {name: bad}]}]}
  edges: [{from: wait, to: check}]
"""


@pytest.fixture
def pay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file that needs no application, in a folder that has none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CASEWORK_APP", raising=False)
    file = tmp_path / "pay.yaml"
    file.write_text(PAY)
    return str(file)


def started(*arguments: str) -> int:
    return code_of_run(["runs", "start", *arguments, "--local"])


def test_the_loan_case_runs_without_servers(capsys: pytest.CaptureFixture[str]) -> None:
    """AW-9. It says that nothing survives, prints the trace, the output and the drawn tree."""
    decisions = ["--decide", "decision=more-info:Check the job.", "--decide", "decision=approve"]
    assert started(MANIFEST, "--app", APP, "--input", INPUT, *decisions) == exits.OK
    told = capsys.readouterr()
    assert "nothing of it survives" in told.err
    for line in (
        "underwrite.1  RunAgent: Answered",
        "decision.2  AwaitDecision: Decided",
        "COMPLETED, outcome approved",
    ):
        assert line in told.out
    assert '"recommendation"' in told.out
    assert "credit_check.1" in told.out


def test_a_workflow_of_the_application_runs_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    """AW-9. With --json one value."""
    assert (
        started("loan-underwriting", "--app", APP, "--input", INPUT, "--decide", "decision=reject", "--json")
        == exits.OK
    )
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (made["status"], made["outcome"]) == ("COMPLETED", "declined")
    assert [step["path"] for step in made["trace"]] == ["underwrite.1", "decision.1"]


def test_each_answer_is_given_to_its_own_question(pay: str, capsys: pytest.CaptureFixture[str]) -> None:
    """AW-9. By the node, or by node and branch; signals by name."""
    answers = ["--signal", 'paid={"amount": 5.10}', "--decide", "check/second=bad:no", "--decide", "first=good"]
    assert started(pay, "--input", "{}", *answers, "--json") == exits.OK
    made = json.loads(capsys.readouterr().out)
    assert {name: value["decision"] for name, value in made["output"].items()} == {"first": "good", "second": "bad"}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], exits.USAGE, "wait.1 waits for signal 'paid' and there is none. Add --signal paid=JSON"),
        (["--signal", "paid"], exits.USAGE, "check.1/first.1 asks for a decision and there is none"),
        (["--signal", "payed"], exits.USAGE, "no signal 'payed'. Did you mean 'paid'?"),
        (["--signal", "paid={"], exits.USAGE, "the payload is not JSON"),
        (["--decide", "frist=good"], exits.USAGE, "no node that asks a person 'frist'. Did you mean 'first'?"),
        (["--decide", "first"], exits.USAGE, "is not NODE=DECISION[:REASON]"),
        (["--new"], exits.USAGE, "--new is not for --local"),
        (["--workflow", "pey"], exits.USAGE, "Did you mean 'pay'?"),
        (["--signal", "paid", "--decide", "first=fine"], exits.USAGE, "'fine' is no decision"),
    ],
)
def test_what_cannot_go_on_says_why(
    pay: str, arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """AW-9. What is missing, and the option that gives it."""
    assert started(pay, "--input", "{}", *arguments) == code
    assert says in capsys.readouterr().err


def test_options_of_local_runs_are_for_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of_run(["runs", "start", "w", "--input", "{}", "--decide", "a=b"]) == exits.USAGE
    assert "--decide is for --local" in capsys.readouterr().err


def test_a_name_that_is_no_file_and_no_workflow_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert started("loan-underwritting", "--app", APP, "--input", "{}") == exits.USAGE
    assert "Did you mean 'loan-underwriting'?" in capsys.readouterr().err


def test_a_failed_run_has_exit_code_1(pay: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(
        PAY.replace("signal: paid", "duration: 0").replace(
            "from: wait, to: check", "from: wait, to: check, condition: '1 > 2'"
        )
    )
    assert started(str(broken), "--input", "{}") == exits.FAILED
    assert "FAILED: no edge out of node 'wait' matches '1 > 2'; it gave " in capsys.readouterr().out
    assert Path(pay).exists()


def question() -> Question:
    return Question("ask.1", "ask", ("approve", "more_info", "reject"), {"reject": "not today"}, {"score": 3})


def test_the_one_at_the_terminal_is_asked_until_an_answer_counts() -> None:
    """AW-9. What is refused is no choice, and a decision that needs a reason is asked for again."""
    answers = Answers((), (), person=True)
    typed = "reject\nmore_info\n\nmore_info\nWhy?\n"
    with CliRunner().isolation(typed) as (_, err, *_rest):
        made = asyncio.run(answers.decide(question()))
        shown = err.getvalue().decode()
    assert made == Decided("more_info", "Why?", "local")
    assert "reject is refused now: not today" in shown
    assert "more_info needs a reason" in shown


def test_a_signal_is_asked_for_at_the_terminal() -> None:
    """AW-9. Its payload as JSON, null unless something is typed."""
    answers = Answers((), (), person=True)
    for typed, payload in (('{"a": 1}\n', {"a": 1}), ("\n", None), ("{\n5\n", 5)):
        with CliRunner().isolation(typed):
            assert asyncio.run(answers.signal(Wait("w", 1, None, "go"), "w.1")) == payload


def test_a_file_without_local_is_told_what_it_needs(pay: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before any API is looked for, whether the input is one or a file."""
    for given in (["--input", "{}"], ["-f", pay]):
        assert code_of_run(["runs", "start", pay, *given]) == exits.USAGE
        told = capsys.readouterr().err
        assert "is a manifest file" in told
        assert "--local" in told
        assert f"casework apply -f {pay}" in told


def test_without_an_application_tools_are_missed_and_it_says_why(
    pay: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, beside the places; a fault that no application would mend does not speak of one."""
    file = tmp_path / "tools.yaml"
    nodes = "{id: wait, type: TOOL, tool: send}\n    - {id: too, type: TOOL, tool: sign}"
    file.write_text(PAY.replace("{id: wait, type: WAIT, signal: paid, outputKey: payment}", nodes))
    assert started(str(file), "--input", "{}") == exits.USAGE
    told = capsys.readouterr().err
    assert "there is no registered tool 'send'" in told
    assert told.count("--app MODULE:NAME names one") == 1
    file.write_text(PAY.replace("initialNode: wait", "initialNode: wat"))
    assert started(str(file), "--input", "{}") == exits.USAGE
    assert "--app" not in capsys.readouterr().err
    assert Path(pay).exists()
