"""Node types that a durable run does not carry out yet are refused where an application is published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from casework.app import App
from casework.durable.publish import publish
from casework.errors import ManifestError

HEAD = "apiVersion: casework.dev/v1alpha1\nkind: AiWorkflow\nmetadata: {name: later}\n"
SPEC = """spec:
  initialNode: n
  nodes:
    - id: n
      type: map
      outputKey: v
      items: "[1]"
      branches: [{id: b, type: human_approval, decisions: [{name: yes}]}]
"""


async def test_later_node_types_say_so(tmp_path: Path) -> None:
    """AW-4. Named with file, line and node, before anything is written; the App itself admits them."""
    file = tmp_path / "later.yaml"
    file.write_text(HEAD + SPEC)
    app = App(manifests=[file])
    assert list(app.workflows()) == ["later"]
    nobody: Any = None
    with pytest.raises(ManifestError) as caught:
        await publish(app, nobody)
    assert str(caught.value) == (
        f"{file}:11: spec.nodes[0].branches[0].type: AiWorkflow 'later': node 'n': branch 'b' is of type "
        "HUMAN_APPROVAL, which is not available there in this release for durable runs. "
        "Run it with `casework runs start --local`."
    )
