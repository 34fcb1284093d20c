"""An errand of many exchanges: each asks for one record of five kilobytes; and what its history weighs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from temporalio.api.history.v1 import HistoryEvent

from casework.agents import ModelAnswer, ModelRequest, Request, tool
from casework.app import App
from tests.integration.durable.apps import errand

RESULT_BYTES = 5 * 1024


@tool(effects=False)
def record(number: int) -> dict[str, object]:
    """A record of five kilobytes."""
    return {"number": number, "text": f"{number:05d} ".ljust(RESULT_BYTES, "x")}


def long_app(folder: Path, exchanges: int) -> App:
    """An App whose agent reads one record in each exchange and answers in the last."""

    def script(request: ModelRequest) -> ModelAnswer:
        read = sum(message.role == "tool" for message in request.messages)
        if read < exchanges - 1:
            return ModelAnswer(requests=(Request(f"c{read}", "record", {"number": read}),))
        return ModelAnswer(text=f"{read} records read")

    return errand(folder, [record], script, exchanges=exchanges)


def weights(history: Sequence[HistoryEvent]) -> dict[int, int]:
    """Bytes of the history when so many exchanges were over: up to the model call of the next one."""
    found, total = {}, 0
    for event in history:
        name = event.activity_task_scheduled_event_attributes.activity_id
        if name.endswith("/model.1"):
            found[int(name.split("/exchange.")[1].split("/")[0]) - 1] = total
        total += event.ByteSize()
    return found
