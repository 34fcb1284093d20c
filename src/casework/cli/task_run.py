"""What `casework task run` does: find the class, make the Transaction, call the Task, tell what came of it."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from casework.app import App, load_app, load_object
from casework.cli import exits
from casework.cli.local_run import is_named
from casework.cli.output import emit_json, safe, words
from casework.cli.run_input import near
from casework.cli.task_input import read_json, transaction_of
from casework.errors import BusinessError, InputError, NotFoundError, ProcessDeclarationError, StoreUnavailableError
from casework.local.outside import REVIEWER, NobodyError
from casework.process.declaring import TaskSpec, is_task, spec_of
from casework.process.failures import ErrorEntity, Spot, error_entity
from casework.process.identities import step_key
from casework.process.local import run_task
from casework.process.statuses import ERROR_IN_PROGRESS
from casework.process.tasks import Decision, Kind, Question, RunEnd
from casework.process.transactions import Transaction
from casework.process.working import Worked
from casework.settings import Settings
from casework.values import Plain, dumps, instant, loads_once

if TYPE_CHECKING:
    from dishka import Provider

    from casework.process.lines import Line


@dataclass(frozen=True)
class Order:
    """What is asked for; the fields are the command's arguments."""

    name: str
    path: str
    reference: str | None
    modules: tuple[str, ...] = ()
    status: str | None = None
    attempt: int = 1
    database: bool = False
    keep: bool = False
    children: str | None = None
    errors: tuple[str, ...] = ()
    decide: str | None = None
    decision_data: str | None = None
    outcome: str | None = None
    output: str | None = None


@dataclass(frozen=True)
class _Found:
    """The Task, the line that it stands in (None: in none), and the application."""

    spec: TaskSpec
    line: Line | None
    app: App

    @property
    def status(self) -> str:
        """In which the Transaction comes to it, where nobody says another."""
        if self.line is not None:
            return self.line.process.monitor.status_to_set
        if self.spec.kind is Kind.ERROR:
            return ERROR_IN_PROGRESS
        return self.app.statuses.working[0]


def run_one(order: Order, as_json: bool) -> int:
    """Run the Task and print; 0 where it is done, 1 where it fails the Transaction.

    Raises:
        InputError: the command line, the file or the class is at fault.
    """
    settings = Settings.load()
    app = load_app(order.reference or settings.app.reference) if is_named(order.reference, settings) else App()
    found = _found(order.name, app)
    _check_database(order, found.spec)
    statuses = app.statuses
    before = transaction_of(read_json(order.path, "--input"), "--input", order.status, found.status, statuses)
    answers = _Answers(order)
    work = partial(
        run_task,
        found.spec.cls,
        before,
        modules=(*app.modules, *_modules(order.modules)),
        statuses=statuses,
        attempt=order.attempt,
        children=_children(order, before, statuses),
        errors=[_error(text, before, found.spec) for text in order.errors],
        agent=answers.agent,
        reviewer=answers.reviewer,
    )
    try:
        made = asyncio.run(_in_database(order, work))
    except (ProcessDeclarationError, NobodyError, StoreUnavailableError):  # not of the case
        raise
    except Exception as error:  # noqa: BLE001  # whatever the Task raises is told as its failure
        return _failed(found.spec, before, error, order.attempt, as_json)
    told = _told(found.spec, before, made, answers)
    if as_json:
        emit_json(told)
    else:
        _print(told)
    return exits.OK


async def _in_database(order: Order, work: Callable[..., Awaitable[Worked]]) -> Worked:
    """Do the work, with `--database` in a transaction of it, which is rolled back unless it is to be kept."""
    if not order.database:
        return await work()
    from casework.cli import stack
    from casework.store.database import Database
    from casework.store.lent import lent_alone

    database = await Database.open(stack.load().database.runtime_dsn(), max_size=1, name="casework-cli")
    async with database, lent_alone(database, keep=order.keep) as connection:
        return await work(connection=connection)


def _check_database(order: Order, spec: TaskSpec) -> None:
    if order.keep and not order.database:
        raise InputError("--keep is for --database. Leave it out, or add that.", field="--keep")
    if order.database and spec.kind in (Kind.PLAIN, Kind.AGENT, Kind.MANUAL):
        raise InputError(
            f"Task {spec.name!r} is a {spec.kind} task, which has no database transaction. Leave out --database.",
            field="--database",
        )


def _found(name: str, app: App) -> _Found:
    if ":" in name:
        cls = load_object(name, "CLASS", "Task", alike=is_task)
        spec = spec_of(cls)
        line = next((line for line in app.lines().values() if cls in line.process.tasks), None)
        return _Found(spec, line, app)
    every = [(line.specs[name], line) for line in app.lines().values() if name in line.specs]
    if not every:
        names = sorted({each for line in app.lines().values() for each in line.specs})
        how = "" if names else " Name its class as package.module:Class, or an application with --app."
        raise NotFoundError(f"The application has no task {name!r}.{near(name, names)}{how}")
    if len({spec.cls for spec, _ in every}) > 1:
        where = ", ".join(line.process.name for _, line in every)
        raise InputError(f"Several tasks are named {name!r}, in {where}. Name the class as package.module:Class.")
    return _Found(*every[0], app)


def _modules(references: tuple[str, ...]) -> list[Provider]:
    from dishka import Provider

    made: list[Provider] = []
    for reference in references:
        named = load_object(reference, "--modules", "module")
        for each in named if isinstance(named, list | tuple) else [named]:
            if not isinstance(each, Provider):
                raise InputError(
                    f"--modules {reference}: {each!r:.80} is no dishka Provider. Name one, or a list of them.",
                    field="--modules",
                )
            made.append(each)
    return made


def _children(order: Order, parent: Transaction, statuses: Any) -> list[Transaction]:
    if order.children is None:
        return []
    given = read_json(order.children, "--children")
    if not isinstance(given, list):
        raise InputError("--children is no JSON list. Give the children as one.", field="--children")
    return [transaction_of(each, "--children", None, parent.status, statuses) for each in given]


def _error(text: str, transaction: Transaction, spec: TaskSpec) -> ErrorEntity:
    code, _, said = text.partition(":")
    return _entity(BusinessError(said.strip() or code, code=code.strip()), transaction, spec, 1)


def _entity(error: BaseException, transaction: Transaction, spec: TaskSpec, attempt: int) -> ErrorEntity:
    step = step_key(transaction.claim_id or transaction.uuid, f"{spec.name}.1", transaction.uuid)
    return error_entity(
        error,
        transaction,
        Spot(transaction.process or "", spec.name, step),
        root=transaction.parent_uuid or transaction.uuid,
        attempt=attempt,
        started=transaction.start_time,
        failed=transaction.start_time,
        environment=os.environ,
    )


class _Answers:
    """The person and the run that the Task waits for, from the command line."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._data = {} if order.decision_data is None else _json(order.decision_data, "--decision-data")
        self._output = _json(order.output, "--output")
        if not isinstance(self._data, dict):
            raise InputError("--decision-data is no JSON object. Give one.", field="--decision-data")
        self.question: Question | None = None
        self.given: Mapping[str, Any] | None = None

    def reviewer(self, _: Transaction, question: Question) -> Decision:
        """The decision of `--decide`."""
        self.question = question
        if self._order.decide is None:
            raise NobodyError(
                f"The task asks: {question.text}\nAnswer with --decide {' | '.join(question.decisions)}.",
                field="--decide",
            )
        name, _colon, reason = self._order.decide.partition(":")
        if name.strip() not in question.decisions:
            offered = ", ".join(question.decisions)
            raise NobodyError(f"--decide: {name.strip()!r} is not on offer; there are {offered}.", field="--decide")
        return Decision(name.strip(), reason.strip(), REVIEWER, self._data)

    async def agent(self, workflow: str, run_id: UUID, given: Mapping[str, Any]) -> RunEnd:
        """A run that ends as `--outcome` and `--output` say."""
        self.given = given
        if self._order.outcome is None and self._order.output is None:
            raise NobodyError(
                f"The task runs workflow {workflow!r} with input {dumps(given)}. Say how it ends with --outcome or "
                "--output.",
                field="--outcome",
            )
        return RunEnd(run_id, self._order.outcome, self._output)


def _json(text: str | None, option: str) -> Any:
    try:
        return None if text is None else loads_once(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{option} is not JSON: {error}. Correct it.", field=option) from None


def _told(spec: TaskSpec, before: Transaction, made: Worked, answers: _Answers) -> dict[str, Plain]:
    told: dict[str, Plain] = {
        "task": spec.name,
        "kind": str(spec.kind),
        "transaction": before.record(),
        "change": _change(before, made.transaction),
        "children": [child.record() for child in made.children],
        "remedy": None,
    }
    if made.remedy is not None:
        told["remedy"] = {
            "answer": str(made.remedy.answer),
            "into": made.remedy.into,
            "at": made.remedy.at,
            "data": dict(made.remedy.data),
        }
    if answers.question is not None:
        told["question"] = {"text": answers.question.text, "decisions": list(answers.question.decisions)}
    if answers.given is not None:
        told["run_input"] = dict(answers.given)
    return told


def _change(before: Transaction, after: Transaction) -> dict[str, Plain]:
    """The fields that are others now; of the data, the keys that are."""
    change: dict[str, Plain] = {}
    for name in ("status", "priority", "straight_through"):
        if getattr(before, name) != getattr(after, name):
            change[name] = getattr(after, name)
    if after.due_time is not None and before.due_time != after.due_time:
        change["due_time"] = instant(after.due_time)
    absent = object()
    data = {key: value for key, value in after.data.items() if before.data.get(key, absent) != value}
    return {**change, "data": data} if data else change


def _print(told: Mapping[str, Any]) -> None:
    before = told["transaction"]
    click.echo(f"Task {told['task']} ({told['kind']}) on Transaction {before['uuid']}")
    if "question" in told:
        click.echo(f"asks       {words(told['question']['text'])} ({', '.join(told['question']['decisions'])})")
    if "run_input" in told:
        click.echo(f"runs with  {safe(dumps(told['run_input']))}")
    for name, value in told["change"].items():
        if name == "data":
            for key, each in value.items():
                click.echo(f"data       {safe(key)}: {safe(dumps(each))}")
        else:
            click.echo(f"{name:<10} {words(before.get(name))} -> {words(value)}")
    for child in told["children"]:
        click.echo(f"child      {child['uuid']}: {safe(dumps(child['data']))}")
    if told["remedy"] is not None:
        click.echo(f"remedy     {words({key: value for key, value in told['remedy'].items() if value})}")
    if not (told["change"] or told["children"] or told["remedy"]):
        click.echo("changes nothing")


def _failed(spec: TaskSpec, before: Transaction, error: Exception, attempt: int, as_json: bool) -> int:
    entity = _entity(error, before, spec, attempt)
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((each for each in reversed(frames) if each.filename == _file_of(spec.cls)), frames[-1])
    told = {
        "type": str(entity.type),
        "code": entity.code,
        "severity": str(entity.severity),
        "short": entity.short,
        "full": entity.full,
        "at": f"{frame.filename}:{frame.lineno}",
    }
    if as_json:
        emit_json({"task": spec.name, "kind": str(spec.kind), "transaction": before.record(), "error": told})
        return exits.FAILED
    click.echo(f"Task {spec.name} ({spec.kind}) fails Transaction {before.uuid}", err=True)
    click.echo(f"{told['type']} {told['code']} ({told['severity']}): {safe(entity.short)}", err=True)
    click.echo(f"at {told['at']}", err=True)
    return exits.FAILED


def _file_of(cls: type[Any]) -> str | None:
    """Where the class is written, as tracebacks name it."""
    return getattr(sys.modules.get(cls.__module__), "__file__", None)
