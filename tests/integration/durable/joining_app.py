"""A workflow whose MAP joins all words with all words: with many it would be more than memory holds."""

from __future__ import annotations

import os
from pathlib import Path

from casework.agents.tools import tool
from casework.app import App

FOLDER = Path(os.environ["CASEWORK_TEST_FOLDER"])
JOINING = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: joining}
spec:
  initialNode: join
  nodes:
    - id: join
      type: MAP
      items: "input.words.map(a, input.words.map(b, input.words.map(c, a + b + c)))"
      outputKey: joined
      branches: [{id: count, type: TOOL, tool: count, arguments: {lists: "{{ item }}"}}]
  edges: [{from: join, to: end}]
"""


@tool(effects=False)
def count(lists: list[list[str]]) -> int:
    """How many texts there are."""
    return sum(len(each) for each in lists)


manifest = FOLDER / "joining.yaml"
manifest.write_text(JOINING)
app = App(tools=[count], manifests=(manifest,))
