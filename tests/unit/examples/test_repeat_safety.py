"""The sample tools do what they declare, against their office over real HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import pytest

from casework.agents import Message, ModelRequest, ToolContext
from casework.agents.invoke import invoke
from casework.errors import FatalError
from casework.examples.repeat_safety import app
from casework.examples.repeat_safety.office import Handler, Office
from casework.examples.repeat_safety.script import clerk
from casework.examples.repeat_safety.settings import OFFICE_URL
from casework.examples.repeat_safety.tools import charge_fee, send_letter, set_address
from casework.testing.destination import serve
from casework.values import dumps

CONTEXT = ToolContext("default", UUID(int=1), "change.1/exchange.1/x.1", key="key-1", input={"customer_id": "C-1/ü"})


@pytest.fixture
def office(monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    """An office that listens, and is the one that tools act on."""
    made = Office()
    server = serve(made, Handler, 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv(OFFICE_URL, f"http://127.0.0.1:{server.server_address[1]}/")
    yield made
    server.shutdown()
    server.server_close()


def counted(office: Office) -> tuple[dict[str, int], dict[str, int]]:
    """Calls and effects by name."""
    found = office.counts()[1]
    assert isinstance(found, dict)
    return found["calls"], found["effects"]


async def test_an_address_is_set_again_without_an_effect(office: Office) -> None:
    """DA-27. Idempotent: the second call changes nothing more; another address does."""
    for address in ("1 Elm Street", "1 Elm Street", "2 Elm Street"):
        made = await invoke(set_address, CONTEXT, {"address": address})
        assert made == {"customer_id": "C-1/ü", "address": address}
    assert counted(office) == ({"set_address:C-1/ü": 3}, {"set_address:C-1/ü": 2})


async def test_a_fee_is_charged_once_for_each_key(office: Office) -> None:
    """DA-27. Keyed: the same key gives the same charge."""
    first, again = [await invoke(charge_fee, CONTEXT, {"amount": Decimal("12.50")}) for _ in range(2)]
    other = await invoke(charge_fee, replace(CONTEXT, key="key-2"), {"amount": Decimal("12.50")})
    assert first == again != other
    assert counted(office) == ({"key-1": 2, "key-2": 1}, {"key-1": 1, "key-2": 1})


async def test_a_letter_is_asked_for_before_it_is_sent_again(office: Office) -> None:
    """DA-27. Verify: the office would send a second one; the second attempt finds the first one's."""
    first = await invoke(send_letter, CONTEXT, {"text": "Hello"})
    assert await invoke(send_letter, replace(CONTEXT, attempt=2), {"text": "Hello"}) == first
    assert counted(office) == ({"key-1": 1}, {"key-1": 1})
    await invoke(send_letter, replace(CONTEXT, key="key-2", attempt=2), {"text": "Hello"})
    assert counted(office)[1] == {"key-1": 1, "key-2": 1}


async def test_without_an_office_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """What to start and what to set."""
    monkeypatch.delenv(OFFICE_URL, raising=False)
    with pytest.raises(FatalError, match=f"{OFFICE_URL} is not set. Start an office"):
        await invoke(set_address, CONTEXT, {"address": "1 Elm Street"})


def test_the_clerk_calls_each_tool_once_and_tells_what_failed() -> None:
    """The script is a pure function of the conversation."""
    messages = [Message(1, "clerk", "user", "Change it.\nCustomer: C-1\nNew address: 1 Elm Street\n")]
    called = []
    while requests := (answer := clerk(ModelRequest("", tuple(messages)))).requests:
        name = requests[0].name
        called.append(name)
        content = dumps({"error": "busy"} if name == "charge_fee" else "ok")
        messages.append(Message(len(messages) + 1, "clerk", "tool", content, call_id="c", tool=name))
    assert called == [tool.name for tool in app.tools]
    assert answer.output == {"recommendation": "look", "summary": "Not done: charge_fee."}


def test_the_manifest_is_admitted() -> None:
    """AW-17. The workflow names tools, agent and script that the App has."""
    assert set(app.workflows()) == {"change-of-address"}
