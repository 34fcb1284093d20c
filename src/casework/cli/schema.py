"""`casework schema`: the schemas of manifests, for editors and for Kubernetes."""

from __future__ import annotations

import json
import sys

import click

from casework.cli import exits


@click.command()
@click.argument("kind", required=False)
@click.option("--crd", is_flag=True, help="The CustomResourceDefinition instead of the JSON Schema.")
def schema(kind: str | None, crd: bool) -> int:
    """Print the JSON Schema of KIND, or of manifests of any kind; with --crd its CustomResourceDefinition.

    An editor reads the schema where a manifest names it: `# yaml-language-server: $schema=PATH`. With --crd and no KIND
    all definitions are printed as YAML documents, for `kubectl apply -f -`; there is no operator yet.
    """
    from casework.cli.resource_names import kind_of
    from casework.graph import schemas
    from casework.graph.kinds import ALL_KINDS

    found = kind_of(kind) if kind else None
    if crd:
        _yaml([schemas.definition(each) for each in ([found] if found else ALL_KINDS)])
    else:
        click.echo(
            json.dumps(schemas.json_schema(found) if found else schemas.any_kind(), indent=2, ensure_ascii=False)
        )
    return exits.OK


def _yaml(documents: list[dict[str, object]]) -> None:
    from casework.graph.schemas.writing import yaml_text

    sys.stdout.write(yaml_text(documents))
