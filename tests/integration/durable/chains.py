"""A graph of quick nodes, for tests of segments: a CONDITION and two tools in a loop, which may be told to fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from casework.agents.tools import Tool, ToolContext, tool
from casework.app import App

LOOP = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {{name: loop}}
spec:
  initialNode: go_on
  maxLoops: 1000
  nodes:
    - {{id: go_on, type: CONDITION, expression: "!has(context.second) || context.second.n < input.rounds"}}
    - {{id: first, type: TOOL, tool: first, outputKey: first}}
    - {{id: second, type: TOOL, tool: second, arguments: {{n: "{{{{ first.n }}}}"}}, outputKey: second}}
    {nodes}
  edges:
    - {{from: go_on, to: first, condition: "true"}}
    - {{from: go_on, to: end, condition: "false"}}
    - {{from: first, to: second}}
    - {{from: second, to: go_on}}
    {edges}
"""
Act = Callable[[str, int], None]
"""What a tool does besides counting: gets its name and how often it was called."""


def loop_app(
    folder: Path,
    act: Act = lambda _name, _calls: None,
    *,
    nodes: str = "",
    edges: str = "",
    computing: Collection[str] = (),
) -> App:
    """The loop, with tools that do `act` before they answer; those in `computing` only compute."""
    manifest = folder / "loop.yaml"
    manifest.write_text(LOOP.format(nodes=nodes, edges=edges))
    return App(tools=list(tools(act, computing)), manifests=(manifest,))


def tools(act: Act, computing: Collection[str]) -> Iterable[Tool]:
    """`first`, which has an effect, and `second`, which only reads, where they are not in `computing`."""
    calls: Counter[str] = Counter()

    def counted(name: str) -> None:
        calls[name] += 1
        act(name, calls[name])

    @tool(effects="first" not in computing, repeat="idempotent", inline="first" in computing)
    def first(ctx: ToolContext) -> dict[str, int]:
        """One more than the second has said."""
        counted("first")
        return {"n": ctx.evidence.get("second", {"n": 0})["n"] + 1}

    @tool(effects=False, inline="second" in computing)
    def second(n: int) -> dict[str, int]:
        """Say it again."""
        counted("second")
        return {"n": n}

    return first, second
