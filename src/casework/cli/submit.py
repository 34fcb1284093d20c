"""Starting runs over the API, one after the other or several at a time, each row answered for on its own."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from casework.cli import exits, run_input
from casework.cli.http import Api
from casework.cli.output import emit_json, safe
from casework.cli.resources_files import ENDINGS
from casework.errors import CaseworkError, InputError, UnreachableError
from casework.values import Plain

TRIES = 3
"""How often a row is sent while the API cannot be reached; its key makes that safe."""
SHOWN_COLUMNS = 8
"""How many ignored columns are named."""
PAUSE_S = 1.0
"""Pause between two tries, in seconds."""


@dataclass(frozen=True)
class Order:
    """What holds for all rows: workflow, the optional members of the request, keys anew, requests at one time."""

    workflow: str
    common: Mapping[str, Any]
    anew: bool = False
    parallel: int = 4


@dataclass(frozen=True)
class Sheet:
    """The file of inputs: columns of its fields, most rows to take, its form where the name does not say it."""

    path: Path
    mapping: Mapping[str, str]
    limit: int | None = None
    form: str | None = None


@dataclass(frozen=True)
class Result:
    """What became of a row: a run (`created` or known before), or an error with its exit code."""

    line: int
    run_id: str | None = None
    status: str | None = None
    created: bool = False
    error: str | None = None
    code: int = exits.OK


def single(order: Order, text: str, as_json: bool) -> int:
    """Start one run of the input `text`; prints it."""
    _refuse_file(order.workflow)
    with Api.find() as api:
        body = {"workflow": order.workflow, "input": run_input.one(text), **order.common}
        run: Any = api.post("/v1/runs", body, headers={"Idempotency-Key": f"cli:{uuid4()}"}).body
    emit_json(run) if as_json else click.echo(f"Run {run['run_id']} is {run['status']}.")
    return exits.OK


def file(order: Order, sheet: Sheet, as_json: bool) -> int:
    """Start a run for each row of the file; the exit code of the first row at fault in file order, else 0."""
    _refuse_file(order.workflow)
    with Api.find() as api:
        workflow = api.get(f"/v1/workflows/{_segment(order.workflow)}")
        schema = workflow.get("input_schema") or {}
        source = run_input.read(sheet.path, schema, sheet.mapping, sheet.limit, sheet.form)
        if source.ignored:
            click.echo(_ignored(source.ignored), err=True)
        with _progress(len(source.rows)) as advance:
            results = _interruptible(lambda: _all(api, order, source, advance), order.anew)
    _report(order, results, as_json)
    return next((result.code for result in results if result.code), exits.OK)


def _refuse_file(workflow: str) -> None:
    """A manifest file where the name of a workflow is asked for: only a local run reads one."""
    if Path(workflow).suffix.lower() in ENDINGS:  # no workflow's name has a dot
        raise InputError(
            f"{workflow} is a manifest file, and a run is started by its workflow's name. Add --local to run the file "
            f"here, or apply it (casework apply -f {workflow}) and name the workflow in it.",
            field="workflow",
        )


def _ignored(columns: tuple[str, ...]) -> str:
    shown = ", ".join(columns[:SHOWN_COLUMNS]) + (", ..." if len(columns) > SHOWN_COLUMNS else "")
    return f"Columns without a field are ignored ({len(columns)}): {shown}"


def _segment(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


def _all(api: Api, order: Order, source: run_input.Source, advance: Callable[[Result], None]) -> list[Result]:
    """Every row's result, in the order of the file. An interrupt lets requests under way end and starts no more."""
    stop = threading.Event()
    with ThreadPoolExecutor(order.parallel) as pool:
        futures = [pool.submit(_row, api, order, source, row, stop) for row in source.rows]
        try:
            for future in futures:  # and not as they come: rows at fault are told in the order of the file
                advance(future.result())
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def _interruptible(work: Callable[[], list[Result]], anew: bool) -> list[Result]:
    """The result of `work`; who interrupts it is told what became of the rows."""
    try:
        return work()
    except KeyboardInterrupt:
        again = "look at `casework runs list`" if anew else "start the same file again, it finds those and goes on"
        click.echo(f"Rows started so far stay started: {again}.", err=True)
        raise


def _row(api: Api, order: Order, source: run_input.Source, row: run_input.Row, stop: threading.Event) -> Result:
    if row.error is not None:
        return Result(row.line, error=row.error, code=exits.USAGE)
    if stop.is_set():
        return Result(row.line, error="was not started", code=exits.INTERRUPTED)
    key = f"cli:{uuid4()}" if order.anew else run_input.key_of(source, order.workflow, row)
    body = {"workflow": order.workflow, "input": row.input, **order.common}
    try:
        answer = _patiently(lambda: api.post("/v1/runs", body, headers={"Idempotency-Key": key}), stop)
    except CaseworkError as error:
        return Result(row.line, error=_advised(str(error), exits.code_of(error)), code=exits.code_of(error))
    return Result(row.line, answer.body["run_id"], answer.body["status"], created=answer.status == 202)


def _advised(message: str, code: int) -> str:
    return f"{message} (--new starts it anew)" if code == exits.CONFLICT else message


def _patiently(send: Callable[[], Any], stop: threading.Event) -> Any:
    for _ in range(TRIES - 1):
        try:
            return send()
        except UnreachableError:
            if stop.wait(PAUSE_S):
                raise
    return send()


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Result], None]]:
    """A bar on stderr where that is a terminal; elsewhere nothing but the rows at fault."""
    if not sys.stderr.isatty():
        yield _complain
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("Starting runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("start", total=total)

        def advance(result: Result) -> None:
            if result.error is not None:
                # Through the bar's console, which moves the bar out of the way and draws it anew below.
                bar.console.print(_complaint(result), markup=False, highlight=False, soft_wrap=True)
            bar.advance(task)

        yield advance


def _complain(result: Result) -> None:
    if result.error is not None:
        click.echo(_complaint(result), err=True)


def _complaint(result: Result) -> str:
    return safe(f"Line {result.line}: {result.error}")


def _report(order: Order, results: list[Result], as_json: bool) -> None:
    counts = _counts(results)
    if as_json:
        return emit_json({"workflow": order.workflow, **counts, "rows": [_plain(result) for result in results]})
    for result in results:
        if result.run_id:
            click.echo(f"{result.run_id}  line {result.line}  {result.status}")
    told = f"{counts['started']} started, {counts['known']} known before, {counts['failed']} not started"
    click.echo(f"{order.workflow}: {told}.", err=True)
    return None


def _counts(results: list[Result]) -> dict[str, int]:
    kinds = Counter("failed" if result.error else "started" if result.created else "known" for result in results)
    return {name: kinds[name] for name in ("started", "known", "failed")}


def _plain(result: Result) -> dict[str, Plain]:
    row = {"line": result.line, "run_id": result.run_id, "status": result.status, "created": result.created}
    return {**row, "error": result.error} if result.error else row
