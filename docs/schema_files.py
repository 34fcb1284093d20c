"""The schemas of manifests as files: JSON Schema for editors, of each kind and of all; CRDs for Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from casework.graph import schemas
from casework.graph.kinds import ALL_KINDS
from casework.graph.schemas.writing import yaml_text


def files() -> Mapping[str, str]:
    """The text of each file of docs/schemas by its name."""
    made = {f"{kind.lower()}.schema.json": _json(schemas.json_schema(kind)) for kind in ALL_KINDS}
    made["casework.schema.json"] = _json(schemas.any_kind())
    made["crds.yaml"] = "# Generated from the models by python -m docs.generate.\n" + yaml_text(
        schemas.definition(kind) for kind in ALL_KINDS
    )
    return made


def _json(schema: object) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
