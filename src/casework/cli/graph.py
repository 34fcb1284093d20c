"""`casework graph`: the picture of a workflow, out of a file or of what is published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

import click

from casework.cli import exits
from casework.cli.servers import app_option

if TYPE_CHECKING:
    from casework.graph.manifests import AiWorkflow


@click.command()
@click.argument("source", metavar="FILE|NAME")
@click.option(
    "--format", "form", type=click.Choice(["mermaid", "svg"]), help="Form (default: as FILE of --output ends)."
)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Where to write it (default: stdout).")
@click.option("--workflow", metavar="NAME", help="Which one, where the file holds several.")
@click.option("--run", "run_id", metavar="RUN_ID", help="Light the node that this run is at, and count its visits.")
@app_option
def graph(
    source: str, form: str | None, output: Path | None, workflow: str | None, run_id: str | None, reference: str | None
) -> int:
    """Draw a workflow as Mermaid text or as SVG.

    FILE is a manifest, admitted or not; no server is asked for it. NAME is a workflow that runs can be started of, in
    its newest version, or with --app one of that application, for which no server is asked. What is a file here is
    taken as a file.
    """
    from casework.graph import drawing

    chosen = form or ("svg" if output is not None and output.suffix.lower() == ".svg" else "mermaid")
    if _is_file(source):
        found = _of_file(Path(source), workflow)
    else:
        found = _of_api(source) if reference is None else _of_app(source, reference)
    current, visits = _of_run(run_id) if run_id else (None, None)
    text = (drawing.svg if chosen == "svg" else drawing.mermaid)(found, current, visits)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
        click.echo(f"Wrote {output}.", err=True)
    return exits.OK


def _is_file(source: str) -> bool:
    return "\x00" not in source and (
        Path(source).is_file() or Path(source).suffix.lower() in {".yaml", ".yml", ".json"}
    )


def _of_file(path: Path, name: str | None) -> AiWorkflow:
    from casework.errors import InputError
    from casework.graph.loading import load_resources
    from casework.graph.manifests import AiWorkflow

    found = [each for each in load_resources(path.read_bytes(), str(path)) if isinstance(each, AiWorkflow)]
    names = ", ".join(each.name for each in found)
    if name is not None:
        found = [each for each in found if each.name == name]
        if not found:
            raise InputError(f"{path} holds no workflow {name!r}; there are: {names or 'none'}.", field="--workflow")
    if not found:
        raise InputError(f"{path} holds no AiWorkflow. Name a file that does.", field="FILE")
    if len(found) > 1:
        raise InputError(f"{path} holds several workflows: {names}. Say which with --workflow.", field="--workflow")
    return found[0]


def _of_app(name: str, reference: str) -> AiWorkflow:
    from casework.app import load_app
    from casework.cli.run_input import near
    from casework.errors import NotFoundError
    from casework.graph.bundle import PinnedWorkflow

    bundles = load_app(reference).bundles()
    found = bundles.get(name)
    if found is None:
        raise NotFoundError(f"{reference} has no workflow {name!r}.{near(name, list(bundles))}")
    return found.workflow if isinstance(found, PinnedWorkflow) else _refuse_tree(name)


def _of_api(name: str) -> AiWorkflow:
    from casework.cli.http import Api
    from casework.graph.manifests import AiWorkflow

    with Api.find() as api:
        found: Any = api.get(f"/v1/workflows/{quote(name, safe='')}/manifest")
    return _refuse_tree(name) if found["manifest"] is None else AiWorkflow.model_validate(found["manifest"])


def _refuse_tree(name: str) -> NoReturn:
    from casework.errors import InputError

    raise InputError(f"{name!r} is a free tree: code, and not a graph that can be drawn beforehand.", field="NAME")


def _of_run(run_id: str) -> tuple[str | None, dict[str, int]]:
    """The node that an open run is at, and how often each was entered, from its steps."""
    from casework.cli.http import Api

    with Api.find() as api:
        run: Any = api.get(f"/v1/runs/{quote(run_id, safe='')}")
        visits: dict[str, int] = {}
        after = 0
        while events := api.get(f"/v1/runs/{run['run_id']}/events", after=after)["items"]:
            for event in events:
                _count(visits, str(event["path"]))
            after = events[-1]["seq"]
    return (None if run["ended_at"] else run["current_node"]), visits


def _count(visits: dict[str, int], path: str) -> None:
    """A path begins with NODE.VISIT; the highest visit is how often the node was entered."""
    node, _, number = path.partition("/")[0].rpartition(".")
    if node and number.isdigit():
        visits[node] = max(visits.get(node, 0), int(number))
