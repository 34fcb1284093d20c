"""The group talk with a real client, over real HTTP, in the streaming wire format of chat completions."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from openai import APIConnectionError, AsyncOpenAI

from casework.examples.group_talk import __main__ as command
from casework.examples.group_talk.committee import CAST, OPENING, seat
from casework.examples.group_talk.endpoint import EndpointVoices
from casework.examples.group_talk.talk import NOBODY, GroupTalkManager, TalkToAll
from casework.tasktree import Commander, NodeState, SplitReply, ToolCall, submit
from casework.testing import OpenAiServer, Reply, calls, cut, fails, halts, hangs, says

KEY = "sk-test-0123456789abcdef"
NAMES = [member.name for member in CAST]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def member_asked(body: Any) -> str:
    """The role whose brief the request carries."""
    return next(name for name in NAMES if f"You are the {name.lower()} " in body["messages"][0]["content"])


def by_script(body: Any) -> Reply:
    """Answers as the scripts of the cast do, from what the role was told over the wire."""
    member = next(member for member in CAST if member.name == member_asked(body))
    return says(member.script(body["messages"][1]["content"]))


async def until(ready: Any) -> None:
    deadline = time.monotonic() + 20
    while not ready():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_the_committee_talks_through_an_endpoint() -> None:
    """TT-24. (b) Any endpoint that streams chat completions: the whole talk, with what each has heard on the wire."""
    heard: list[tuple[str, str]] = []
    with OpenAiServer(by_script) as server:
        async with EndpointVoices("any", server.url) as voices:
            manager = seat(GroupTalkManager(voices, OPENING, hear=lambda *piece: heard.append(piece)))
            await Commander().run(manager)
        assert manager.end_reason == NOBODY
        assert manager.failures == []
        assert {line.speaker for line in manager.minutes} == {"Chair", *NAMES}
        for talk in manager.children:
            assert isinstance(talk, TalkToAll)
            outcomes = list(talk.result.values())
            assert outcomes.count("takes the floor") == (talk.number < len(manager.minutes) - 1)
    said = {speaker: "".join(piece for who, piece in heard if who == speaker) for speaker in NAMES}
    assert all(line.words in said.get(line.speaker, OPENING) for line in manager.minutes)
    assert len(heard) > 100  # word by word, not reply by reply
    first, last = server.requests[0], server.requests[-1]
    assert first.body["stream"] is True
    assert first.body["model"] == "any"
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body["messages"][1]["content"] == f"Chair: {OPENING}"
    assert all(str(line) in last.body["messages"][1]["content"] for line in manager.minutes)


async def test_who_is_denied_is_left_at_once() -> None:
    """TT-24. The connection of a reply that nobody will hear is closed, and the endpoint can stop writing.

    Who is denied before its request has gone out has no connection; a talk in which all have asked is waited for.
    """

    def respond(body: Any) -> Reply:
        return says("First words.") if member_asked(body) == NAMES[0] else halts(says("So do I, at length."), 3)

    with OpenAiServer(respond) as server:
        async with EndpointVoices("any", server.url) as voices:
            asked, talks = 0, 0
            while asked < len(NAMES):
                before, talks = len(server.requests), talks + 1
                manager = seat(GroupTalkManager(voices, "Begin.", rounds=1))
                await Commander().run(manager)
                await until(lambda talks=talks: server.left == len(server.requests) - talks)  # all but the winners
                asked = len(server.requests) - before
    winner = manager.minutes[1].speaker
    assert sorted((manager.children[0].result or {}).values()) == sorted(
        ["takes the floor", *[f"denied: {winner} speaks"] * 2]
    )


async def test_a_stream_that_is_cut_or_refused_is_one_roles_fault() -> None:
    """TT-24. Who breaks off is heard as far as it came; who is refused is silent; the others go on."""

    def respond(body: Any) -> Reply:
        told = body["messages"][1]["content"]
        if member_asked(body) == NAMES[0]:
            return cut(says("one two three four five six")) if "one two" not in told else says("PASS")
        return fails(400, "not you") if member_asked(body) == NAMES[1] else says("PASS")

    with OpenAiServer(respond) as server:
        async with EndpointVoices("any", server.url) as voices:
            manager = seat(GroupTalkManager(voices, "Begin."))
            await Commander().run(manager)
    assert [str(line) for line in manager.minutes[1:]] == [f"{NAMES[0]}: one two three (breaks off)"]
    assert {role for _, role, _ in manager.failures} == {NAMES[0], NAMES[1]}
    assert "not you" in next(error for _, role, error in manager.failures if role == NAMES[1])
    assert manager.end_reason == NOBODY


async def test_closing_leaves_no_connection() -> None:
    """TT-24. While one role thinks and one speaks: the talk ends and every stream is left."""

    def respond(body: Any) -> Reply:
        return hangs() if member_asked(body) == NAMES[1] else halts(says("one two three four"), 3)

    with OpenAiServer(respond) as server:
        async with EndpointVoices("any", server.url) as voices, Commander() as commander:
            manager = submit(seat(GroupTalkManager(voices, "Begin.")), parent=commander)
            await until(lambda: manager.speaking in NAMES and len(server.requests) == 3)
            await manager.close_group_talk("lunch")
            await manager
        await until(lambda: server.left == 2)
    assert manager.state is NodeState.COMPLETED
    assert manager.minutes[-1].broken_off


def test_the_command_asks_an_endpoint(capsys: pytest.CaptureFixture[str]) -> None:
    """TT-24. (b) From the command line; where nobody can be asked it fails and says why."""
    with OpenAiServer(by_script) as server:
        assert command.main(["--base-url", server.url, "--model", "any", "--rounds", "3"]) == 0
        assert "It ends: round limit (3)." in capsys.readouterr().out
    with OpenAiServer(lambda body: fails(401, "no such key")) as server:
        assert command.main(["--base-url", server.url, "--model", "any"]) == 1
        assert "no such key" in capsys.readouterr().out


# ---- the wire itself


async def chunks(server: OpenAiServer, **asked: Any) -> AsyncIterator[Any]:
    async with AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0) as client:
        messages: Any = [{"role": "user", "content": "Look."}]
        async for chunk in await client.chat.completions.create(model="m", messages=messages, stream=True, **asked):
            yield chunk


async def all_of(values: AsyncIterator[Any]) -> list[Any]:
    return [value async for value in values]


async def test_one_reply_is_split_from_the_wire() -> None:
    """TT-22. Words and whole tool calls out of a stream as a real client reads it."""
    wanted = [("credit_check", {"applicant_id": "A-1", "deep": {"x": ["}", '"']}}), ("now", {})]
    with OpenAiServer([calls(*wanted, text="Let me look."), cut(calls(*wanted, text="Let me look."))]) as server:
        async with SplitReply(chunks(server, stream_options={"include_usage": True})) as reply:
            words, asked = await asyncio.gather(all_of(reply.words), all_of(reply.calls))
        assert words == ["Let", " me", " look."]
        assert asked == [
            ToolCall("call_1", "credit_check", '{"applicant_id":"A-1","deep":{"x":["}","\\""]}}'),
            ToolCall("call_2", "now", "{}"),
        ]
        async with SplitReply(chunks(server)) as reply:
            with pytest.raises(APIConnectionError):
                await all_of(reply.calls)


def test_the_stream_is_in_the_services_form() -> None:
    """TT-24. Events, their fields and their end, as the real service sends them; usage only where it is asked for."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Look."}], "stream": True}
    with OpenAiServer(lambda _: says("One two.")) as server:
        url = f"{server.url}/chat/completions"
        plain = httpx2.post(url, json=body)
        counted = httpx2.post(url, json={**body, "stream_options": {"include_usage": True}})
        refused = httpx2.post(url, json={**body, "stream": False, "stream_options": {}})
    assert plain.headers["content-type"] == "text/event-stream"
    assert re.fullmatch(r"(data: \{.*\}\n\n){4}data: \[DONE\]\n\n", plain.text)
    assert plain.text.count('"finish_reason":"stop"') == 1
    assert '"usage"' not in plain.text
    assert counted.text.count('"usage":null') == 4
    assert counted.text.count('"total_tokens":15') == 1
    assert refused.status_code == 400


def test_the_command_names_the_address_where_nobody_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """TT-24. (b) Of an endpoint that is away: which one, in one sentence."""
    url = "http://127.0.0.1:1/v1"  # where nobody listens
    assert command.main(["--model", "any", "--base-url", url]) == 1
    said = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("It ends: "))
    assert url in said
    assert ".." not in said
    assert ".)" not in said
