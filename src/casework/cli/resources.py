"""`casework apply`, `get`, `describe`, `diff`, `delete`, `validate`: manifests in an installation.

All but `validate` are clients of the API. A file is read and checked here first, so that what is wrong is told with
its line, and nothing is sent.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option, safe, table, when
from casework.cli.resources_files import files_option, optional_files
from casework.cli.servers import app_option

if TYPE_CHECKING:
    from casework.app import App
    from casework.cli.http import Api
    from casework.graph.manifests import Resource


@click.command()
@files_option
@click.option("--dry-run", is_flag=True, help="Let the server check all and say what would come of it; write nothing.")
@json_option
def apply(paths: tuple[Path, ...], dry_run: bool, as_json: bool) -> int:
    """Apply manifests, all of them or none.

    What is applied is kept as a numbered generation that does not change. Workflows that are applied, or refer to what
    is, get a new version, which new runs take; open runs keep theirs. A WorkflowSession starts a run; it is the same
    run however often it is applied.
    """
    from casework.cli import resources_files, resources_view
    from casework.cli.http import Api
    from casework.errors import InputError
    from casework.graph.origins import in_files

    found = resources_files.read(paths)
    with Api.find() as api:
        body: Any = {"manifests": [_plain(one) for one in found], "dry_run": dry_run}
        try:
            answer: Any = api.post("/v1/resources", body).body
        except InputError as error:  # the API tells places in the request; their writer knows files and lines
            raise InputError(in_files(str(error), [one.origin for one in found]), field="--file") from None
    emit_json(answer) if as_json else resources_view.report(answer)
    return exits.OK


@click.command()
@click.argument("kind", required=False)
@click.argument("name", required=False)
@json_option
def get(kind: str | None, name: str | None, as_json: bool) -> None:
    """List what is applied, of all kinds or of one; with NAME, print that manifest as YAML.

    KIND is as in manifests, or short: workflows, agents, providers, servers, sessions.
    """
    from casework.cli.http import Api
    from casework.cli.resource_names import kind_of
    from casework.cli.resources_view import in_order, lean, yaml_lines

    found = kind_of(kind) if kind else None
    with Api.find() as api:
        if name is not None:
            shown = api.get(_path(found or "", name))
            manifest = {**in_order(shown["manifest"]), "status": shown["status"]}
            return emit_json(manifest) if as_json else click.echo("\n".join(yaml_lines(lean(manifest))))
        items = _all(api, found)
    if as_json:
        return emit_json({"items": items})
    rows = [{**one, "applied_at": when(one["applied_at"])} for one in items]
    return table(rows, _COLUMNS, "Nothing is applied. An application's own workflows: `casework workflows list`.")


_COLUMNS = {
    "kind": "KIND", "name": "NAME", "generation": "GENERATION", "applied_by": "BY", "applied_at": "APPLIED",
    "run_id": "RUN",
}  # fmt: skip


def _all(api: Api, kind: str | None) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = api.get("/v1/resources", kind=kind, limit=200, cursor=cursor)
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items


@click.command()
@click.argument("kind")
@click.argument("name")
@json_option
def describe(kind: str, name: str, as_json: bool) -> None:
    """Show one resource: its conditions now, the generation they are of, its spec, and who applied what when."""
    from casework.cli import resources_view
    from casework.cli.http import Api
    from casework.cli.resource_names import kind_of

    with Api.find() as api:
        found = api.get(_path(kind_of(kind), name))
    emit_json(found) if as_json else resources_view.description(found)


@click.command()
@files_option
def diff(paths: tuple[Path, ...]) -> int:
    """Compare manifests with what is applied, line by line. Exit code 0: all the same, 1: something differs."""
    from casework.cli import resources_files
    from casework.cli.http import Api
    from casework.cli.resources_view import difference

    differs = False
    with Api.find() as api:
        for one in resources_files.read(paths):
            kind = type(one).__name__
            for line in difference(f"{kind}/{one.name}", _applied(api, kind, one.name), _plain(one)):
                differs = True
                click.echo(line)
    return exits.FAILED if differs else exits.OK


def _applied(api: Api, kind: str, name: str) -> Any:
    from casework.errors import NotFoundError

    try:
        return api.get(_path(kind, name))["manifest"]
    except NotFoundError:
        return None


@click.command()
@click.argument("kind", required=False)
@click.argument("name", required=False)
@optional_files
@json_option
def delete(kind: str | None, name: str | None, paths: tuple[Path, ...], as_json: bool) -> None:
    """Delete the resource NAME of KIND, or with -f all that the files hold.

    Of a deleted workflow no new run is started; runs that are pinned to a version keep it. Refused is what a workflow
    refers to, and a WorkflowSession whose run is open. Files are deleted one resource after the other, what refers to
    others first; what is refused ends it, and what is not there is told.
    """
    from casework.cli import resources_files
    from casework.cli.http import Api
    from casework.cli.resource_names import kind_of

    if bool(paths) == bool(kind) or bool(kind) != bool(name):
        raise click.UsageError("Name KIND and NAME, or files with -f, and not both.")
    if kind and name:
        doomed = [(kind_of(kind), name)]
    else:
        doomed = [(type(one).__name__, one.name) for one in resources_files.users_first(resources_files.read(paths))]
    with Api.find() as api:
        for each in doomed:
            _delete(api, *each, as_json=as_json, must=not paths)


def _delete(api: Api, kind: str, name: str, *, as_json: bool, must: bool) -> None:
    from casework.errors import NotFoundError

    try:
        found = api.delete(_path(kind, name))
    except NotFoundError:
        if must:
            raise
        return click.echo(f"{kind}/{name} is not there.", err=True)
    if as_json:
        return emit_json(found)
    hidden = found["hidden_version"]
    more = f" No new run is started of it (version {hidden} was the newest)." if hidden else ""
    return click.echo(f"{found['kind']}/{found['name']} deleted.{more}")


@click.command()
@files_option
@app_option
def validate(paths: tuple[Path, ...], reference: str | None) -> int:
    """Check manifests without a server; every problem with file, line and path.

    With --app, or where one is named by CASEWORK_APP or casework.toml, names of tools, agents and workflows are held
    against that application. Without one they are taken to be there, and listed. A use of an input that the schema
    leaves open but does not name, and a misspelt word of the schema, are warned of on stderr.
    """
    from casework.cli import resources_check, resources_files

    found = resources_files.read(paths)
    checked = resources_check.check(found, _app(reference))
    for hint in checked.hints:
        click.echo(f"Warning: {safe(hint)}", err=True)
    click.echo(f"{checked.count} manifest{'s'[: checked.count != 1]} hold{'s'[: checked.count == 1]}.")
    if checked.trusted:
        click.echo(f"Not checked, since no application is named (--app): {', '.join(checked.trusted)}.", err=True)
    return exits.OK


def _app(reference: str | None) -> App | None:
    """The application, where one is named at all."""
    from casework.app import CONFIG, load_app
    from casework.settings import Settings

    configured = reference or Settings.load().app.reference
    return load_app(configured) if configured or Path(CONFIG).is_file() else None


def _plain(one: Resource) -> dict[str, Any]:
    return one.model_dump(by_alias=True)


def _path(kind: str, name: str) -> str:
    return f"/v1/resources/{kind}/{quote(name, safe='')}"
