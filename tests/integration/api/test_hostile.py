"""Whatever is sent, the answer is an announced one: never a 500, and what was accepted can be read back."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.integration.api.conftest import GOOD, LETTER, Door, publish

TEXTS = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\ud800",
    "\udfff\ud800",
    "\u202e",
    "\u2400",
    "𝄞",
    "x" * 5000,
    "'; drop",
    "{{x}}",
    "\r\n",
)
NUMBERS = ("0", "-0", "1e999", "1e-999", "1e1000", "1E+99999999", "9" * 999, "-" + "9" * 1001, "0.1", "1.10", "NaN")
ANYTHING = {**LETTER, "metadata": {"name": "anything"}, "spec": {**LETTER["spec"], "input": {"type": "object"}}}  # type: ignore[dict-item]  # a manifest is plain data


def hostile(draw: random.Random, depth: int = 0) -> str:
    """JSON text of any shape, with all that is hard to hold."""
    kind = draw.choice(("text", "number", "word", "list", "object", "object") if depth < 4 else ("text", "number"))
    if kind == "text":
        return json.dumps(draw.choice(TEXTS))
    if kind == "number":
        return draw.choice(NUMBERS)
    if kind == "word":
        return draw.choice(("true", "false", "null"))
    inner = [hostile(draw, depth + 1) for _ in range(draw.randrange(4))]
    if kind == "list":
        return f"[{','.join(inner)}]"
    return "{" + ",".join(f"{json.dumps(draw.choice(TEXTS))}:{item}" for item in inner) + "}"


async def test_no_input_makes_the_api_fail(door: Door) -> None:
    await publish(door.db, ANYTHING)
    draw = random.Random(20)
    seen: dict[int, int] = {}
    for _ in range(150):
        body = f'{{"workflow": "anything", "input": {{"a": {hostile(draw)}, "b": {hostile(draw)}}}}}'
        answer = await door.ask("POST", "/v1/runs", content=body.encode())
        assert answer.status in {202, 422}, body
        seen[answer.status] = seen.get(answer.status, 0) + 1
        if answer.status == 202:
            read = await door.get(f"/v1/runs/{answer.body['run_id']}")
            assert read.body["input"] == answer.body["input"]
    assert min(seen[202], seen[422]) > 20, seen


async def test_no_member_makes_the_api_fail(door: Door) -> None:
    draw = random.Random(21)
    members = ("workflow", "input", "model", "turn_limit", "on_behalf_of", "command", "reason", "decision_id")
    run_id = await door.start()
    paths = ("/v1/runs", f"/v1/runs/{run_id}/cancel", f"/v1/reviews/{run_id}/decisions")
    for _ in range(150):
        body = ",".join(f'"{name}": {hostile(draw, 3)}' for name in draw.sample(members, draw.randrange(5)))
        path = draw.choice(paths)
        answer = await door.ask("POST", path, content=f"{{{body}}}".encode())
        assert answer.status in {202, 404, 409, 422}, body


async def test_no_query_makes_the_api_fail(door: Door) -> None:
    draw = random.Random(22)
    names = ("user", "status", "workflow", "limit", "cursor", "after", "since", "wait", "timeout")
    for _ in range(100):
        query: dict[str, Any] = {
            name: draw.choice((*(text.encode("utf-8", "replace").decode() for text in TEXTS[:-4]), *NUMBERS))
            for name in draw.sample(names, 3)
        }
        path = draw.choice(("/v1/runs", "/v1/reviews", "/v1/metrics/workflows", "/v1/workflows"))
        answer = await door.get(path, **query)
        assert answer.status in {200, 422}, query


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [64, 99, 300, 900])
async def test_an_input_that_is_nested_too_deeply_is_refused_and_lists_stay_readable(door: Door, levels: int) -> None:
    await publish(door.db, ANYTHING)
    answer = await door.ask(
        "POST",
        "/v1/runs",
        content=f'{{"workflow": "anything", "input": {{"n": {"[" * levels}{"]" * levels}}}}}'.encode(),
    )
    assert answer.status == 422
    assert answer.body["errors"][0]["field"] == "input"
    accepted = await door.post("/v1/runs", {"workflow": "anything", "input": {"n": nested(63)}})
    assert accepted.status == 202
    (listed,) = (await door.get("/v1/runs")).body["items"]
    assert listed["input"] == {"n": nested(63)}


async def test_a_stored_value_that_cannot_be_shown_is_marked_and_fails_no_list(door: Door) -> None:
    run_id, other = await door.start(), await door.start()
    async with door.admin.transaction() as conn:
        await conn.execute(
            "update agent_ops.agent_runs set request = %s::jsonb where run_id = %s",
            (f'{{"n": {"[" * 99}1{"]" * 99}}}', run_id),
        )
    items = {item["run_id"]: item for item in (await door.get("/v1/runs")).body["items"]}
    assert items[str(other)]["input"] == GOOD
    assert "(not shown: nested too deeply)" in str(items[str(run_id)]["input"])
    assert (await door.get(f"/v1/runs/{run_id}")).status == 200


@pytest.mark.parametrize(
    "content",
    [
        b'{"workflow": "letter", "input": {"to": "A", "amount": 1e99999999999999999999}}',
        b'{"workflow": "letter", "input": {"to": "A", "to": "B", "amount": 1}}',
        b'{"workflow": "letter", "workflow": "letter", "input": {"to": "A", "amount": 1}}',
    ],
)
async def test_json_that_two_readers_would_read_differently_is_refused(door: Door, content: bytes) -> None:
    assert (await door.ask("POST", "/v1/runs", content=content)).status == 422


async def test_a_start_that_the_engine_can_never_take_leaves_no_row(door: Door) -> None:
    answer = await door.post("/v1/runs", {"workflow": "letter", "input": {**GOOD, "note": "x" * 1_010_000}})
    assert answer.status == 422
    assert answer.body["errors"][0]["field"] == "input"
    assert "1,010," in answer.body["detail"]
    assert "limit of 990,000 bytes" in answer.body["detail"]
    assert (await door.get("/v1/runs")).body["items"] == []
