"""The scripted clerk: calls the four tools one after the other, then says what was done. A pure function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from casework.agents import Message, ModelAnswer, ModelRequest, Request
from casework.values import Plain, loads

FEE = Decimal("12.50")
_ADDRESS = re.compile(r"^New address: (.+)$", re.MULTILINE)


def clerk(request: ModelRequest) -> ModelAnswer:
    """The next tool whose result is not there yet; when all are there, the summary."""
    task = next((message.content for message in request.messages if message.role == "user"), "")
    found = _ADDRESS.search(task)
    results = _results(request.messages)
    for number, (name, arguments) in enumerate(_calls(found[1].strip() if found else "unknown"), 1):
        if name not in results:
            return ModelAnswer(text=f"I call {name}.", requests=(Request(f"call_{number}", name, arguments),))
    failed = [name for name, result in results.items() if isinstance(result, dict) and "error" in result]
    said = f"Not done: {', '.join(failed)}." if failed else "Address set, fee charged, change noted, letter sent."
    return ModelAnswer(text=said, output={"recommendation": "look" if failed else "close", "summary": said})


def _calls(address: str) -> Sequence[tuple[str, dict[str, Any]]]:
    return (
        ("set_address", {"address": address}),
        ("charge_fee", {"amount": FEE}),
        ("note_change", {"entry": f"moved to {address}"[:200]}),
        ("send_letter", {"text": "We have noted your new address."}),
    )


def _results(messages: Sequence[Message]) -> dict[str, Plain]:
    """What each tool answered, by name."""
    return {message.tool: _read(message.content) for message in messages if message.role == "tool" and message.tool}


def _read(content: str) -> Plain:
    try:
        return loads(content)
    except ValueError:
        return {"error": content}
