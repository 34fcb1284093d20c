"""The fixtures that pytest loads by itself, as a project's own tests use them."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from datetime import timedelta
from pathlib import Path

import pytest

from casework.errors import FatalError, StateError
from casework.process import (
    BusinessProcess,
    Finalizer,
    ManualTask,
    PlainTask,
    Question,
    TransactionMonitorTask,
    bot_task,
)
from casework.process.tasks import Change, Decision, TaskContext
from casework.process.transactions import Transaction
from casework.testing.answers import ModelScript, ScriptedReviewer
from casework.testing.processes import InventedClock, ProjectFixture, TaskFixture

ROOT = Path(__file__).parents[3]
PROJECT = """
from dishka import Provider, Scope

from casework.app import App
from casework.process import (
    AgentTask, BusinessProcess, Change, Finalizer, ManualTask, PlainTask, ProcessingMonitor, Question,
    TransactionalTask, bot_task,
)
from casework.process.injection import TaskConnection


class Rates:
    closed = False

    def of(self, currency):
        return {"EUR": 1, "USD": 2}[currency]


@bot_task("convert", effects=False)
class Convert(PlainTask):
    def __init__(self, rates: Rates) -> None:
        self.rates = rates

    async def run(self, transaction, ctx):
        return Change(data={"euros": transaction.data["amount"] // self.rates.of(transaction.data["currency"])})


@bot_task("assess")
class Assess(AgentTask):
    workflow = "assess"

    async def input(self, transaction):
        return {"amount": transaction.data["amount"]}

    async def outcome(self, transaction, end):
        return Change(data={"assessed": end.output, "outcome": end.outcome})


@bot_task("ask")
class Ask(ManualTask):
    async def question(self, transaction, errors):
        return Question(f"Pay {transaction.data['amount']}?", ("yes", "no"))

    async def decided(self, transaction, decision):
        return Change(data={"paid": decision.decision == "yes"})


class Notes:
    def __init__(self, connection: TaskConnection) -> None:
        self.connection = connection

    async def add(self, text):
        await self.connection.open.execute("insert into notes values (%s)", (text,))


@bot_task("note")
class Note(TransactionalTask):
    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    async def run(self, transaction, ctx):
        await self.notes.add(transaction.data["text"])
        if transaction.data.get("bad"):
            raise ValueError("bad")


async def rates():
    yield Rates()
    Rates.closed = True


modules = Provider(scope=Scope.APP)
modules.provide(rates, provides=Rates)
modules.provide(Notes, scope=Scope.REQUEST)
pay = BusinessProcess(
    name="pay",
    monitor=ProcessingMonitor,
    tasks=(Convert, Assess, Ask),
    finalizer=Finalizer("PROCESSING_IN_PROGRESS", "PROCESSING_COMPLETED"),
)
app = App(manifests="assess.yaml", processes=[pay], modules=[modules])
"""
MANIFEST = """
apiVersion: casework.dev/v1alpha1
kind: LlmProvider
metadata: {name: any}
spec: {type: openai, defaultModel: gpt-5}
---
apiVersion: casework.dev/v1alpha1
kind: AiAgent
metadata: {name: clerk}
spec: {provider: any, systemPrompt: Assess it.}
---
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: assess}
spec:
  initialNode: read
  nodes:
    - {id: read, type: AGENT, agentRef: clerk, outputKey: assessment}
    - {id: check, type: HUMAN_APPROVAL, decisions: [{name: fine, outcome: approved}, {name: bad, outcome: refused}]}
  edges:
    - {from: read, to: check}
    - {from: check, to: end, condition: fine}
    - {from: check, to: end, condition: bad}
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with a module of Tasks, in a folder of its own."""
    pytester.makepyfile(shop=PROJECT)
    pytester.makefile(".yaml", assess=MANIFEST)
    pytester.syspathinsert()
    return pytester


TESTS = """
import pytest
import shop

from casework.errors import ProcessDeclarationError


def test_convert(casework_task):
    made = casework_task(shop.Convert, {"amount": 10, "currency": "USD"}, modules=[shop.modules])
    assert made.transaction.data["euros"] == 5
    with pytest.raises(KeyError):
        casework_task(shop.Convert, {"amount": 10, "currency": "GBP"}, app=shop.app)
    with pytest.raises(ProcessDeclarationError, match="no module provides Rates"):
        casework_task(shop.Convert, {"amount": 10, "currency": "USD"})


def test_pay(casework_project, casework_model, casework_reviewer, casework_clock):
    shop.Rates.closed = False
    casework_model.says("looks good")
    casework_reviewer.decides("fine", when="check").decides("no", when="Pay 9?").decides("yes")
    casework_clock.skip(days=3)
    project = casework_project(shop.app)
    big = project.add("INTAKE_COMPLETED", {"amount": 10, "currency": "EUR"})
    small = project.add("INTAKE_COMPLETED", {"amount": 9, "currency": "EUR"})
    assert project.settle() > 0
    assert project.passed(big).data["assessed"] is not None
    assert (project[big].data["outcome"], project[big].data["paid"]) == ("approved", True)
    assert (project[small].data["paid"], project[small].status) == (False, "PROCESSING_COMPLETED")
    assert project[big].start_time.day == 4
    assert casework_clock.now >= project[big].start_time
    assert len(casework_model.asked) == 2
    assert not shop.Rates.closed

def test_it_was_closed():
    assert shop.Rates.closed


@pytest.fixture
def notes(casework_store):
    casework_store.execute("create table notes (text text)")
    casework_store.execute("grant select, insert on notes to casework_runtime")
    return casework_store

def test_note(casework_task, notes):
    casework_task(shop.Note, {"text": "kept"}, app=shop.app, store=notes)
    with pytest.raises(ValueError):
        casework_task(shop.Note, {"text": "lost", "bad": True}, app=shop.app, store=notes)
    assert notes.execute("select text from notes") == [("kept",)]

def test_each_test_has_a_database_of_its_own(casework_store):
    assert casework_store.execute("select to_regclass('notes')") == [(None,)]
    assert casework_store.execute("select count(*) from agent_ops.agent_runs") == [(0,)]
"""
OPTIONS = ("-p", "casework.testing.plugin", "-p", "no:cacheprovider")


def test_tasks_and_processes_are_tested_in_plain_functions(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BP-7. A Task from its class; a process with model, person and clock; a database of its own for each test.

    In a process of its own, without a plugin for coroutines: what the tests import stays out of this one.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project.makepyfile(test_shop=TESTS)
    project.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=TESTS.count("def test_"))


def test_without_the_server_the_store_skips_and_says_why(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The embedded server is an extra: a test that asks for it is skipped with the command that installs it."""
    monkeypatch.setattr("casework.store.local.binaries.PACKAGE", "no_such_package")
    project.makepyfile(test_shop="def test_store(casework_store): pass")
    result = project.runpytest(*OPTIONS, "-p", "no:asyncio", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines("*pip install 'casework?local?'*")


def test_pytest_finds_the_plugin_by_itself_and_pays_nothing_for_it() -> None:
    """It is an entry point, and imports of this package no more than itself until a fixture is asked for."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert [importlib.import_module(name).__name__ for name in points.values()] == list(points)
    seen = "import sys, casework.testing.plugin; print(sorted(n for n in sys.modules if n.startswith('casework')))"
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["['casework',", "'casework.testing',", "'casework.testing.plugin']"]


async def test_an_async_test_is_told_what_to_do(casework_task: TaskFixture) -> None:
    """The fixtures run a loop of their own; in a coroutine they say so."""

    @bot_task("any", effects=False)
    class Any(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            return None

    with pytest.raises(StateError, match="plain test functions"):
        casework_task(Any)


@bot_task("question")
class Asks(ManualTask):
    async def question(self, transaction: Transaction, errors: object) -> Question:
        return Question("Is it good?", ("yes", "no"))

    async def decided(self, transaction: Transaction, decision: Decision) -> Change | None:
        return Change(data={"reason": decision.reason, **decision.data})


def test_the_first_rule_that_holds_decides(casework_task: TaskFixture, casework_reviewer: ScriptedReviewer) -> None:
    """By text or by function, for some or for all questions; where none holds, the question is told."""
    with pytest.raises(FatalError, match=r"No rule .* 'Is it good\?'; on offer are yes, no"):
        casework_task(Asks)
    casework_reviewer.decides("yes", "once", times=1)
    casework_reviewer.decides("no", "big", when=lambda asked: bool(asked.transaction and asked.transaction.data))
    casework_reviewer.decides("yes", "text", when="good", data={"more": 1})
    made = [casework_task(Asks, data).transaction.data for data in ({}, {"amount": 5}, {})]
    assert [data["reason"] for data in made] == ["once", "big", "text"]
    assert made[2]["more"] == 1
    assert len(casework_reviewer.asked) == 4


def test_a_conversation_beyond_the_script_is_told(casework_model: ModelScript) -> None:
    """The n-th answer of a conversation is the n-th written down, each time that it is asked for."""
    from casework.agents.messages import Message
    from casework.agents.model import ModelRequest

    first = ModelRequest("", (Message(1, "clerk", "user", "hello"),))
    second = ModelRequest("", (*first.messages, Message(2, "clerk", "assistant", ""), Message(3, "clerk", "tool", "5")))
    casework_model.calls("look", {"id": 1}, agent="clerk").says("done", agent="clerk").says("any")
    for _ in range(2):
        assert casework_model(first).requests[0].name == "look"
        assert casework_model(second).text == "done"
    assert casework_model(ModelRequest("", (Message(1, "other", "user", "hello"),))).text == "any"
    third = ModelRequest(
        "", (*second.messages, Message(4, "clerk", "assistant", "done"), Message(5, "clerk", "user", "?"))
    )
    with pytest.raises(FatalError, match=r"2 answers for agent 'clerk', and it is asked for one more, after '\?'"):
        casework_model(third)


class Waiting(TransactionMonitorTask):
    status_to_monitor, status_to_set = "INTAKE_COMPLETED", "PROCESSING_IN_PROGRESS"


def test_time_is_one_for_the_test_and_its_projects(
    casework_project: ProjectFixture, casework_clock: InventedClock
) -> None:
    """Eight hours are skipped in no time; what a Monitor sleeps passes for every project."""
    begun = casework_clock.now
    line = BusinessProcess(
        name="wait", monitor=Waiting, finalizer=Finalizer("PROCESSING_IN_PROGRESS", "PROCESSING_COMPLETED")
    )
    first, second = casework_project(line), casework_project([line])
    casework_clock.skip(timedelta(hours=8))
    first.run("wait", polls=3)
    late = second.add("INTAKE_COMPLETED")
    assert casework_clock.now == begun + timedelta(hours=8, minutes=2)
    assert second[late].start_time == casework_clock.now
