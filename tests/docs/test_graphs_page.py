"""The page about graphs: its example is run, and gives the paths that the page speaks of."""

from __future__ import annotations

from casework.agents.model import ModelAnswer, ModelRequest
from casework.agents.tools import tool
from casework.app import App
from casework.graph.loading import load
from casework.graph.tracing import TraceStep
from casework.local.house import House
from casework.local.run import run_local
from tests.docs.pages import ROOT, blocks
from tests.unit.local.conftest import Answers, said

PAGE = ROOT / "docs/concepts/graphs.md"


@tool(effects=False)
def search_notes(words: str) -> list[str]:
    """Names of notes that have the words."""
    return [f"note on {words}"]


@tool(effects=False)
def search_letters(words: str) -> list[str]:
    """Names of letters that have the words."""
    return [f"letter on {words}", "letter from home"]


def reader(request: ModelRequest) -> ModelAnswer:
    return ModelAnswer(f"in short: {request.messages[-1].content}")


async def test_the_example_of_the_page_runs() -> None:
    """AW-4, AW-9. PARALLEL tools, a MAP over what they found, a sub-workflow for each, a person at the end."""
    (block,) = [each for each in blocks(PAGE) if each.language == "yaml"]
    app = App(tools=[search_notes, search_letters], manifests=load(block.text, "research.yaml"))
    house = House(Answers({"publish": [said("approve")]}), lambda *_: reader, app.toolbox)
    end = await run_local(house, app.workflow("research"), {"question": "bridges"})
    assert (end.status, end.outcome) == ("COMPLETED", "published")
    assert [made["output"] for made in end.output] == [
        "in short: Summarise note on bridges.",
        "in short: Summarise letter on bridges.",
        "in short: Summarise letter from home.",
    ]
    assert end.trace[:3] == (
        TraceStep("find.1/notes.1", "RunTool", "Returned"),
        TraceStep("find.1/letters.1", "RunTool", "Returned"),
        TraceStep("find.1", "RunBranches", "Joined"),
    )
    assert list(end.subs) == ["read.1/source.1", "read.1/source.2", "read.1/source.3"]
