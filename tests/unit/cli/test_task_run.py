"""`casework task run`: one Task, from the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casework.cli import exits
from casework.cli.root import code_of_run

MODULE = '''
"""A project's Tasks."""

from dishka import Provider, Scope

from casework.app import App
from casework.errors import BusinessError
from casework.process import (
    ERRORS, AgentTask, BusinessProcess, Change, ErrorTask, Finalizer, JoinTask, ManualTask, PlainTask,
    ProcessingMonitor, Question, Remedy, SplitTask, bot_task,
)
from casework.process.policies import Answer


class Rates:
    def of(self, currency):
        return {"EUR": 1, "USD": 2}[currency]


@bot_task("convert", effects=False)
class Convert(PlainTask):
    def __init__(self, rates: Rates) -> None:
        self.rates = rates

    async def run(self, transaction, ctx):
        if "amount" not in transaction.data:
            raise BusinessError("the amount is missing", code="NO_AMOUNT")
        euros = transaction.data["amount"] // self.rates.of(transaction.data["currency"])
        return Change(data={"euros": euros, "attempt": ctx.attempt}, priority=3)


@bot_task("skip-ahead", effects=False)
class SkipAhead(PlainTask):
    async def run(self, transaction, ctx):
        return Change(status="COMPLETED")


@bot_task("idle", effects=False)
class Idle(PlainTask):
    async def run(self, transaction, ctx):
        return None


@bot_task("split")
class Split(SplitTask):
    async def split(self, transaction, ctx):
        return [{"part": part} for part in transaction.data["parts"]]


@bot_task("join")
class Join(JoinTask):
    async def join(self, parent, children, ctx):
        return Change(data={"sum": sum(child.data["part"] for child in children)})


@bot_task("assess")
class Assess(AgentTask):
    workflow = "assess"

    async def input(self, transaction):
        return {"amount": transaction.data["amount"]}

    async def outcome(self, transaction, end):
        return Change(data={"outcome": end.outcome, "score": end.output["score"]})


@bot_task("ask")
class Ask(ManualTask):
    async def question(self, transaction, errors):
        return Question("Pay it?", ("yes", "no"))

    async def decided(self, transaction, decision):
        return Change(data={"paid": decision.decision, "why": decision.reason, **decision.data})


@bot_task("mend")
class Mend(ErrorTask):
    async def handle(self, transaction, errors, ctx):
        return Remedy(Answer.CLONE, into="INTAKE_COMPLETED", data={"codes": [error.code for error in errors]})


class Plain:
    pass


modules = Provider(scope=Scope.APP)
modules.provide(Rates)
pay = BusinessProcess(
    name="pay", monitor=ProcessingMonitor, tasks=(Convert,),
    finalizer=Finalizer("PROCESSING_IN_PROGRESS", "PROCESSING_COMPLETED"),
)
app = App(processes=[pay, ERRORS], modules=[modules])
'''


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with the module, and no application named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CASEWORK_APP", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "shop_tasks.py").write_text(MODULE)
    yield
    sys.modules.pop("shop_tasks", None)


def run(name: str, given: Any, *options: str) -> int:
    Path("given.json").write_text(given if isinstance(given, str) else json.dumps(given))
    return code_of_run(["task", "run", name, "--input", "given.json", *options])


def told(capsys: pytest.CaptureFixture[str], name: str, given: Any, *options: str) -> dict[str, Any]:
    assert run(name, given, "--json", *options) == exits.OK
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


MODULES = ("--modules", "shop_tasks:modules")


def test_a_class_runs_alone_and_prints_what_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    """BP-7. The Change, and nothing that was there before; what its constructor asks for comes from --modules."""
    assert run("shop_tasks:Convert", {"amount": 10, "currency": "USD"}, *MODULES, "--attempt", "2") == exits.OK
    out = capsys.readouterr().out
    for line in ("Task convert (plain) on Transaction ", "priority   0 -> 3", "data       euros: 5", "attempt: 2"):
        assert line in out
    assert "currency" not in out
    assert run("shop_tasks:Idle", {}) == exits.OK
    assert "changes nothing" in capsys.readouterr().out


def test_a_task_of_the_application_runs_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    """BP-7. Modules are the App's, and the status is that in which its process takes Transactions in."""
    made = told(capsys, "convert", {"amount": 10, "currency": "EUR"}, "--app", "shop_tasks:app")
    assert (made["task"], made["kind"], made["change"]["data"]["euros"]) == ("convert", "plain", 10)
    assert made["transaction"]["status"] == "PROCESSING_IN_PROGRESS"
    Path("casework.toml").write_text('app = "shop_tasks:app"')
    made = told(capsys, "shop_tasks:Convert", {"amount": 10, "currency": "EUR"})
    assert made["transaction"]["status"] == "PROCESSING_IN_PROGRESS"


def test_input_is_json_itself_or_the_name_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """What begins with a brace is JSON, what begins with an @ a file's name, as for `runs start` and for curl."""
    Path("given.json").write_text('{"amount": 10, "currency": "EUR", "at": "a//b"}')
    for given in ("given.json", "@given.json", Path("given.json").read_text()):
        assert code_of_run(["task", "run", "shop_tasks:Convert", "--input", given, *MODULES, "--json"]) == exits.OK
        made = json.loads(capsys.readouterr().out)
        assert (made["change"]["data"]["euros"], made["transaction"]["data"]["at"]) == (10, "a//b")


def test_a_class_that_is_not_there_is_told_with_the_tasks_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    """The near one, and of the module the Tasks alone: not what it imports, nor its applications."""
    assert run("shop_tasks:Konvert", {}) == exits.USAGE
    err = capsys.readouterr().err
    assert "Did you mean 'Convert'?" in err
    assert "Assess" in err
    for other in ("App", "Provider", "Rates", "Plain,", "app"):
        assert f" {other}" not in err.partition("there are")[2]


def test_a_whole_transaction_is_taken_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object with status and data; from standard input too."""
    import io

    whole = {
        "uuid": "8d9f6b0e-6f0c-4c5e-9d0e-0f4a2b1c3d4e",
        "status": "SUBMISSION_IN_PROGRESS",
        "data": {"status": "of the case"},
        "due_time": "2026-02-01T08:00:00.000000+00:00",
        "priority": 7,
        "parent_uuid": None,
    }
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(whole)))
    assert code_of_run(["task", "run", "shop_tasks:SkipAhead", "--input", "-", "--json"]) == exits.OK
    made = json.loads(capsys.readouterr().out)
    assert made["transaction"] | whole == made["transaction"]
    assert made["change"] == {"status": "COMPLETED"}
    # with a status of its own and no data beside it, it is the data of a new one
    made = told(capsys, "shop_tasks:Idle", {"status": "of the case"})
    assert made["transaction"]["data"] == {"status": "of the case"}


def test_each_kind_takes_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    """Children of a split and of a join, a run's end, a person's decision, errors and a remedy."""
    made = told(capsys, "shop_tasks:Split", {"parts": [4, 5]})
    assert [child["data"] for child in made["children"]] == [{"part": 4}, {"part": 5}]
    Path("children.json").write_text('[{"part": 4}, {"part": 5}]')
    made = told(capsys, "shop_tasks:Join", {}, "--children", "children.json")
    assert made["change"]["data"] == {"sum": 9}
    ended = ("--outcome", "approved", "--output", '{"score": 8}')
    made = told(capsys, "shop_tasks:Assess", {"amount": 5}, *ended)
    assert (made["run_input"], made["change"]["data"]) == ({"amount": 5}, {"outcome": "approved", "score": 8})
    made = told(capsys, "shop_tasks:Ask", {}, "--decide", "no: too much", "--decision-data", '{"limit": 3}')
    assert made["change"] == {"straight_through": False, "data": {"paid": "no", "why": "too much", "limit": 3}}
    made = told(capsys, "shop_tasks:Mend", {}, "--error", "NO_AMOUNT: it is missing", "--error", "LATE")
    assert made["transaction"]["status"] == "ERROR_IN_PROGRESS"
    assert made["remedy"]["answer"] == "clone"
    assert made["remedy"]["data"] == {"codes": ["NO_AMOUNT", "LATE"]}
    for name, given, line in (("Split", {"parts": [4]}, '{"part":4}'), ("Mend", {}, "remedy     answer clone, into")):
        assert run(f"shop_tasks:{name}", given) == exits.OK
        assert line in capsys.readouterr().out


def test_what_the_task_raises_is_told_with_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    """BP-7. As it would be recorded; exit code 1, and the line that raised it."""
    assert run("shop_tasks:Convert", {}, *MODULES) == exits.FAILED
    err = capsys.readouterr().err
    assert "BUSINESS NO_AMOUNT (ERROR): BusinessError: the amount is missing" in err
    assert f"shop_tasks.py:{1 + MODULE[: MODULE.index('raise BusinessError')].count(chr(10))}" in err
    assert run("shop_tasks:Convert", {"amount": 1, "currency": "GBP"}, *MODULES, "--json") == exits.FAILED
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["type"], error["code"]) == ("APPLICATION", "KeyError")
    assert run("shop_tasks:SkipAhead", {}) == exits.FAILED
    assert "APPLICATION TransitionError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["shop_tasks:Convert", {}], "no module provides Rates, which its constructor asks for"),
        (["shop_tasks:Plain", {}], "Plain is no Task"),
        (["shop_tasks:Konvert", {}], "has no 'Konvert'; there are Convert, SkipAhead, "),
        (["convert", {}], "The application has no task 'convert'. There are: none. Name its class"),
        (["konvert", {}, "--app", "shop_tasks:app"], "no task 'konvert'. Did you mean 'convert'?"),
        (["shop_tasks:Idle", {}, "--modules", "shop_tasks:Plain"], "is no dishka Provider"),
        (["shop_tasks:Idle", "[1]"], "--input is no JSON object"),
        (["shop_tasks:Idle", "{"], "given.json is not JSON"),
        (["shop_tasks:Idle", '{"a": 1, "a": 2}'], "Give it once"),
        (["shop_tasks:Idle", {"status": "X", "data": {}}], "There is no status 'X'"),
        (
            ["shop_tasks:Idle", {"status": "HAS_ERROR", "data": {}, "prio": 1}],
            "no field 'prio'. Did you mean 'priority'?",
        ),
        (["shop_tasks:Idle", {"status": "HAS_ERROR", "data": {}, "priority": "high"}], "'high', not a whole number"),
        (["shop_tasks:Idle", {"status": "HAS_ERROR", "data": {}, "uuid": "5"}], "'uuid' is '5', not a UUID"),
        (["shop_tasks:Idle", {"status": "HAS_ERROR", "data": {}, "due_time": "2026-01-01"}], "not an instant"),
        (["shop_tasks:Ask", {}], "The task asks: Pay it?\nAnswer with --decide yes | no."),
        (["shop_tasks:Ask", {}, "--decide", "perhaps"], "'perhaps' is not on offer; there are yes, no"),
        (["shop_tasks:Ask", {}, "--decide", "yes", "--decision-data", "[]"], "--decision-data is no JSON object"),
        (["shop_tasks:Assess", {"amount": 5}], "runs workflow 'assess' with input {\"amount\":5}"),
        (["shop_tasks:Assess", {"amount": 5}, "--output", "{"], "--output is not JSON"),
        (["shop_tasks:Join", {}, "--children", "given.json"], "--children is no JSON list"),
        (["shop_tasks:Join", {}, "--children", "none.json"], "none.json cannot be read"),
        (["shop_tasks:Join", {}, "--children", "[{"], "--children: the value is not JSON"),
        (["shop_tasks:Idle", {}, "--database"], "is a plain task, which has no database transaction"),
        (["shop_tasks:Idle", {}, "--keep"], "--keep is for --database"),
    ],
)
def test_what_is_at_fault_is_named(arguments: list[Any], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line, the file or the class: exit code 2, with what to do."""
    name, given, *options = arguments
    assert run(name, given, *options) == exits.USAGE
    assert says in capsys.readouterr().err
