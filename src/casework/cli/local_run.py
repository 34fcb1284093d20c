"""`casework runs start FILE --local`: one run in this process, without servers; nothing survives it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from casework.cli import exits, run_input
from casework.cli.local_answers import Answers, Given, check_names, on_terminal
from casework.cli.output import emit_json, safe
from casework.cli.submit import Sheet
from casework.errors import InputError, ManifestError, NotFoundError, PolicyUnavailableError
from casework.values import Plain, dumps

if TYPE_CHECKING:
    from casework.app import App
    from casework.graph.manifests import Manifest
    from casework.graph.tracing import TraceStep
    from casework.local.house import House, LocalEnd
    from casework.policy.limits import PolicyReading
    from casework.settings import Settings
    from casework.trees.bundle import Pinned


@dataclass(frozen=True)
class LocalOrder:
    """What is run: a manifest file or the name of a workflow of the App, and what answers it."""

    workflow: str
    reference: str | None = None
    chosen: str | None = None
    """Which workflow of the file, where it has several."""
    model: str | None = None
    turn_limit: int | None = None
    decisions: tuple[Given, ...] = ()
    signals: tuple[Given, ...] = ()


def start(order: LocalOrder, text: str | None, sheet: Sheet | None, as_json: bool) -> int:
    """Run it to its end and print trace, output and tree; 0 where it COMPLETED, else 1."""
    from casework.local.run import run_local
    from casework.settings import Settings

    settings = Settings.load()
    app, pinned = _found(order, settings)
    check_names(pinned, order.decisions, order.signals)
    given = _input(text, sheet, pinned.input_schema or {})
    answers = Answers(order.decisions, order.signals, on_terminal())
    click.echo(f"Local run of {pinned.name}: it is in this process alone, and nothing of it survives.", err=True)
    house = _house(order, app, settings, answers, as_json)
    end = asyncio.run(run_local(house, pinned, given))
    _print(end, as_json)
    if answers.unused:
        click.echo(f"Nothing asked for: {', '.join(answers.unused)}.", err=True)
    return exits.OK if end.status == "COMPLETED" else exits.FAILED


def _found(order: LocalOrder, settings: Settings) -> tuple[App, Pinned]:
    from casework.graph.loading import load
    from casework.graph.manifests import AiWorkflow

    path = Path(order.workflow)
    if not path.is_file():
        return _of_app(order, settings)
    made = load(path.read_bytes(), str(path))
    app = _with(made, _app(order, settings, needed=False), named=is_named(order.reference, settings))
    return app, app.bundles()[_name([each for each in made if isinstance(each, AiWorkflow)], order, path)]


def _with(made: Sequence[Manifest], app: App, *, named: bool) -> App:
    """The application with what a file holds.

    Raises:
        ManifestError: they do not hold together; also says where tools are missed since no application is `named`.
    """
    try:
        whole = app.with_manifests(made)
        whole.bundles()
    except ManifestError as error:
        if named or not _names_code(made):
            raise
        why = "No application is named, so no tool or script is registered. --app MODULE:NAME names one."
        raise ManifestError(f"{error}\n{why}", field="app") from None
    return whole


def _names_code(made: Sequence[Manifest]) -> bool:
    """Whether manifests name what only an application brings: a tool, or a script of a model."""
    from casework.graph.manifests import AiAgent, AiWorkflow

    return any(
        any(each.tool for each in one.spec.vertices)
        if isinstance(one, AiWorkflow)
        else bool(one.spec.tools if isinstance(one, AiAgent) else one.spec.script)
        for one in made
    )


def _of_app(order: LocalOrder, settings: Settings) -> tuple[App, Pinned]:
    app = _app(order, settings, needed=True)
    found = app.bundles().get(order.workflow)
    if found is None:
        raise NotFoundError(
            f"{order.workflow} is neither a manifest file nor a workflow of the application."
            f"{run_input.near(order.workflow, list(app.bundles()))}"
        )
    return app, found


def _app(order: LocalOrder, settings: Settings, *, needed: bool) -> App:
    from casework.app import App, load_app

    if not needed and not is_named(order.reference, settings):
        return App()
    return load_app(order.reference or settings.app.reference)


def is_named(reference: str | None, settings: Settings) -> bool:
    """Whether an application is named: by `reference`, a setting, or the file in the working folder."""
    from casework.app import CONFIG

    return bool(reference or settings.app.reference) or Path(CONFIG).exists()


def _name(workflows: list[Any], order: LocalOrder, path: Path) -> str:
    """The workflow to run: the one named, else the only one that no other of the file refers to."""
    names: list[str] = [each.name for each in workflows]
    if order.chosen is not None:
        if order.chosen not in names:
            raise NotFoundError(f"{path} has no workflow {order.chosen!r}.{run_input.near(order.chosen, names)}")
        return order.chosen
    inner = {vertex.workflow_ref for each in workflows for vertex in each.spec.vertices}
    outer = [name for name in names if name not in inner]
    if len(outer) != 1:
        said = f"has the workflows {', '.join(outer)}" if outer else "has no workflow"
        raise InputError(f"{path} {said}. Say which one with --workflow NAME.", field="workflow")
    return outer[0]


def _input(text: str | None, sheet: Sheet | None, schema: Mapping[str, Any]) -> Mapping[str, Plain]:
    if sheet is None:
        value = run_input.one(text or "")
        assert isinstance(value, dict)
        return value
    rows = run_input.read(sheet.path, schema, sheet.mapping, sheet.limit, sheet.form).rows
    if len(rows) > 1:
        raise InputError(f"{sheet.path} has {len(rows)} inputs and a local run takes one. Add --limit 1.", field="file")
    if rows[0].error is not None:
        raise InputError(f"{sheet.path}: line {rows[0].line}: {rows[0].error}", field="file")
    assert isinstance(rows[0].input, dict)
    return rows[0].input


def _house(order: LocalOrder, app: App, settings: Settings, answers: Answers, as_json: bool) -> House:
    from casework.graph.state import DEFAULT_TURN_LIMIT
    from casework.local.house import House
    from casework.models.catalogue import Models

    chosen = settings.models
    models = Models(
        app.scripts,
        model=chosen.model,
        base_url=chosen.base_url,
        deadline=chosen.timeout_s,
        connect_timeout=chosen.connect_timeout_s,
    )
    return House(
        answers,
        lambda agent, providers: models.for_agent(agent, providers, order.model),
        tools=app.toolbox,
        trees={(tree.name, tree.version): tree for tree in app.trees},
        policies=_ShippedPolicy(app),
        turn_limit=order.turn_limit or DEFAULT_TURN_LIMIT,
        told=_silent if as_json else _tell,
    )


@dataclass(frozen=True)
class _ShippedPolicy:
    """The application's own limits: a local run has no governed policy."""

    app: App

    async def read(self, purpose: str) -> PolicyReading:
        """The shipped limits of a purpose."""
        from casework.policy.limits import PolicyReading

        limits = self.app.fixture_limits(purpose)
        if limits is None:
            raise PolicyUnavailableError(
                f"no shipped policy for purpose {purpose!r}, and a local run reads no other. Start it durably."
            )
        return PolicyReading(limits, "fixture_fallback", reason="a local run has no governed policy")


def _silent(_within: str, _step: TraceStep) -> None:
    """With --json there is one value at the end."""


def _tell(within: str, step: TraceStep) -> None:
    place = f"{within} > {step.path}" if within else step.path
    click.echo(safe(f"{place}  {step.command}: {step.outcome}"))


def _print(end: LocalEnd, as_json: bool) -> None:
    if as_json:
        return emit_json(_plain(end))
    click.echo("")
    outcome = f", outcome {end.outcome}" if end.outcome else ""
    click.echo(safe(f"{end.status}{outcome}{': ' + end.reason if end.reason else ''}"))
    if end.status == "COMPLETED":
        click.echo(f"Output: {safe(dumps(end.output))}")
    _draw(end)
    return None


def _draw(end: LocalEnd, title: str = "") -> None:
    click.echo("")
    if title:
        click.echo(safe(f"The run at {title}:"))
    click.echo("\n".join(safe(line) for line in end.drawing.split("\n")))
    for path, sub in end.subs.items():
        _draw(sub, f"{title} > {path}" if title else path)


def _plain(end: LocalEnd) -> dict[str, Plain]:
    return {
        "status": end.status,
        "outcome": end.outcome,
        "output": end.output,
        "reason": end.reason,
        "trace": [step._asdict() for step in end.trace],
        "tree": end.drawing,
        "runs": {path: _plain(sub) for path, sub in end.subs.items()},
    }
