"""An errand of many exchanges: each asks for one record of five kilobytes; as an application of ours."""

from __future__ import annotations

from pathlib import Path

from casework.agents import ModelAnswer, ModelRequest, Request, tool
from casework.app import App

WORKFLOW = "errand"
RECORD_BYTES = 5 * 1024


def text_of(number: int) -> str:
    """A record of five kilobytes."""
    return f"{number:05d} ".ljust(RECORD_BYTES, "x")


def records_in(words: str) -> int:
    """How many records the order asks for."""
    return int(words.split()[1])


@tool(effects=False)
def record(number: int) -> str:
    """A record of five kilobytes."""
    return text_of(number)


def reader(request: ModelRequest) -> ModelAnswer:
    """One record in each answer; when all are read, how many."""
    read = sum(message.role == "tool" for message in request.messages)
    if read < records_in(request.messages[0].content):
        return ModelAnswer(requests=(Request(f"call_{read}", "record", {"number": read}),))
    return ModelAnswer(text=f"{read} records read")


app = App(tools=[record], manifests=[Path(__file__).parent / "errand.yaml"], scripts={"reader": reader})
