"""Real HTTP, real wire format: what a provider may do, and what the adapter makes of it."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from typing import Any

import pytest

from casework.agents import Message, ModelRequest, ToolSchema
from casework.errors import FatalError, RetryableError
from casework.graph.manifests import AiAgent, LlmProvider
from casework.models.catalogue import Models
from casework.models.layer import load_layer
from casework.testing import OpenAiServer, Reply, calls, cut, fails, hangs, says
from casework.values import clean, dumps

KEY = "sk-test-0123456789abcdef"
SCHEMA = {
    "type": "object",
    "properties": {"recommendation": {"enum": ["approve", "refer", "decline"]}, "ratio": {"type": "number"}},
    "required": ["recommendation"],
    "additionalProperties": False,
}
TOOL = ToolSchema("credit_check", "Ask the bureau.", {"type": "object", "properties": {"id": {"type": "string"}}})


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """The provider layer takes seconds to load, more on a busy machine; that is not to count against a deadline."""
    load_layer()
    importlib.import_module("pydantic_ai.models.openai")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUREAU_TEST_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def provider(url: str, **spec: object) -> LlmProvider:
    document = {
        "kind": "LlmProvider",
        "metadata": {"name": "local"},
        "spec": {"type": "openai", "baseUrl": url, "keyRef": {"env": "BUREAU_TEST_KEY"}, "defaultModel": "m-1", **spec},
    }
    return LlmProvider.model_validate(document)


def ask(*said: Message, schema: object = None) -> ModelRequest:
    messages = said or (Message(1, "a", "user", "Look at A-1."),)
    return ModelRequest("You underwrite.", messages, (TOOL,), schema)


async def answer_of(
    replies: Iterable[Reply], request: ModelRequest, deadline: float = 10.0, **spec: object
) -> tuple[Any, OpenAiServer]:
    with OpenAiServer(replies) as server:
        model = Models(deadline=deadline).resolve(None, provider(server.url, **spec))
        try:
            return await model.request(request), server
        except (RetryableError, FatalError) as error:
            return error, server


async def test_a_tool_call_comes_back_with_exact_arguments_and_the_request_is_well_formed() -> None:
    """DA-15. One setting away: an OpenAI-compatible endpoint, with the key in the header and nowhere else."""
    answer, server = await answer_of([calls(("credit_check", '{"id": "A-1", "amount": 10.10}'))], ask(), temperature=0)
    assert answer.requests[0].name == "credit_check"
    assert answer.requests[0].arguments == {"id": "A-1", "amount": Decimal("10.10")}
    assert str(answer.requests[0].arguments["amount"]) == "10.10"
    (sent,) = server.requests
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body["model"] == "m-1"
    assert [m["role"] for m in sent.body["messages"]] == ["system", "user"]
    (tool,) = sent.body["tools"]
    assert tool["function"]["name"] == "credit_check"
    assert not tool["function"].get("strict")
    assert KEY not in str(answer)


async def test_an_answer_is_sent_back_as_it_came_with_the_tools_result() -> None:
    """DA-15. The second exchange holds the call of the first and its result, by id."""
    first, _ = await answer_of([calls(("credit_check", {"id": "A-1"}), text="I look.")], ask())
    made = Message(2, "a", "assistant", first.text, first.requests, parts=first.parts)
    result = Message(3, "a", "tool", '{"score":665}', call_id="call_1", tool="credit_check")
    second, server = await answer_of([says("Refer.")], ask(Message(1, "a", "user", "Look."), made, result))
    assert second.text == "Refer."
    wire = server.requests[0].body["messages"]
    assert wire[2]["tool_calls"][0]["id"] == "call_1"
    assert wire[2]["content"] == "I look."
    assert wire[3] == {"role": "tool", "tool_call_id": "call_1", "content": '{"score":665}'}


async def test_tokens_and_prices_make_an_exact_cost() -> None:
    """AW-19. Prices are per million tokens; the cost has no rounding of a float in it."""
    prices = {"inputPerMillion": "0.15", "outputPerMillion": "0.6"}
    answer, _ = await answer_of([says("Done.", tokens=(1001, 7))], ask(), prices=prices)
    assert (answer.tokens_in, answer.tokens_out) == (1001, 7)
    assert answer.cost == Decimal("0.00015435")


async def test_the_output_comes_through_the_final_answer_tool_with_its_digits() -> None:
    """AW-20. A structured answer holds to the schema and keeps its digits."""
    answer, server = await answer_of(
        [calls(("final_answer", '{"recommendation": "refer", "ratio": 37.890}'))], ask(schema=SCHEMA)
    )
    assert answer.output == {"recommendation": "refer", "ratio": Decimal("37.890")}
    assert answer.requests == ()
    assert [t["function"]["name"] for t in server.requests[0].body["tools"]] == ["credit_check", "final_answer"]


async def test_a_further_turn_after_a_final_answer_is_accepted_by_the_strict_server() -> None:
    """DA-13. The reviewer's words follow the final answer; its call is closed first, as the wire format demands."""
    first, _ = await answer_of([calls(("final_answer", {"recommendation": "refer"}))], ask(schema=SCHEMA))
    made = Message(2, "a", "assistant", "", parts=first.parts)
    words = Message(3, "a", "user", "Look again.")
    second, server = await answer_of(
        [calls(("final_answer", {"recommendation": "decline"}))],
        ask(Message(1, "a", "user", "Look."), made, words, schema=SCHEMA),
    )
    assert second.output == {"recommendation": "decline"}
    assert [m["role"] for m in server.requests[0].body["messages"]] == ["system", "user", "assistant", "tool", "user"]


@pytest.mark.parametrize("text", ['{"recommendation": "refer"}', '```json\n{"recommendation": "refer"}\n```'])
async def test_json_text_is_an_answer_too(text: str) -> None:
    """AW-20. A model that writes its JSON as text is understood."""
    answer, _ = await answer_of([says(text)], ask(schema=SCHEMA))
    assert answer.output == {"recommendation": "refer"}


async def test_an_answer_that_does_not_hold_is_asked_again_within_the_step() -> None:
    """AW-20. Asked again at most twice; tokens of all requests count."""
    replies = [says("I would refer."), calls(("final_answer", {"recommendation": "maybe"}))]
    answer, server = await answer_of(
        [*replies, calls(("final_answer", {"recommendation": "refer"}))], ask(schema=SCHEMA)
    )
    assert answer.output == {"recommendation": "refer"}
    assert (answer.asked_again, answer.tokens_in, answer.tokens_out) == (2, 30, 15)
    assert "'maybe' is not one of" in str(server.requests[2].body["messages"][-1]["content"])


async def test_three_answers_that_do_not_hold_end_it() -> None:
    """AW-20, AW-8. A bounded number of times, then an error: never a made-up answer."""
    error, server = await answer_of([says("no")] * 4, ask(schema=SCHEMA))
    assert isinstance(error, FatalError)
    assert "no answer of 3 can be used" in str(error)
    assert len(server.requests) == 3


async def test_arguments_that_are_no_json_reach_the_tool_check_as_text() -> None:
    """AW-17. What the model sent is told to the model, not guessed."""
    answer, _ = await answer_of([calls(("credit_check", '{"id": '))], ask())
    assert answer.requests[0].arguments == '{"id": '


async def test_tools_asked_together_with_the_final_answer_are_called_first() -> None:
    """DA-9. An answer given before its evidence does not count."""
    both = calls(("final_answer", {"recommendation": "approve"}), ("credit_check", {"id": "A-1"}))
    answer, _ = await answer_of([both], ask(schema=SCHEMA))
    assert [r.name for r in answer.requests] == ["credit_check"]
    assert answer.output is None


async def test_a_429_says_when_to_come_again_in_seconds() -> None:
    """DA-18. Too many requests is passing trouble; the provider's client does not retry by itself."""
    error, server = await answer_of([fails(429, retry_after="7"), says("late")], ask())
    assert isinstance(error, RetryableError)
    assert error.retry_after == 7
    assert len(server.requests) == 1


async def test_a_429_says_when_to_come_again_as_a_date() -> None:
    """DA-18. Retry-After may be an HTTP date."""
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    error, _ = await answer_of([fails(429, retry_after=when)], ask())
    assert isinstance(error, RetryableError)
    assert error.retry_after is not None
    assert 60 < error.retry_after <= 90


async def test_a_quota_that_is_used_up_is_no_passing_trouble() -> None:
    """DA-18. The same status, but waiting does not help."""
    error, _ = await answer_of([fails(429, "You exceeded your current quota", code="insufficient_quota")], ask())
    assert isinstance(error, FatalError)


@pytest.mark.parametrize("status", [500, 502, 503, 529])
async def test_a_server_error_is_passing_trouble(status: int) -> None:
    """DA-18. Tried again by the engine, once per attempt."""
    error, server = await answer_of([fails(status)], ask())
    assert isinstance(error, RetryableError)
    assert f"HTTP {status}" in str(error)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_ends_the_run_and_repeats_no_key(status: int) -> None:
    """DA-15, DA-18. The error is for good, and the key is neither in it nor in what it hangs on."""
    error, _ = await answer_of([fails(status, f"Incorrect API key provided: {KEY}. sk-other-abcdef123456")], ask())
    assert isinstance(error, FatalError)
    assert f"HTTP {status}" in str(error)
    assert KEY not in str(error)
    assert "abcdef" not in str(error)
    assert error.__cause__ is None


async def test_a_hanging_provider_is_given_up_at_the_deadline() -> None:
    """DA-18. Each attempt is shorter than the activity's start-to-close."""
    before = time.monotonic()
    error, _ = await answer_of([hangs()], ask(), deadline=0.5)
    assert isinstance(error, RetryableError)
    assert time.monotonic() - before < 10


async def test_a_cut_connection_is_passing_trouble() -> None:
    """DA-18. Half an answer is none."""
    error, _ = await answer_of([cut(says("Refer, because of the following long reasons."))], ask())
    assert isinstance(error, RetryableError)


@pytest.mark.parametrize("body", ["{not json", "[]", '{"object": "chat.completion"}', ""])
async def test_an_answer_that_cannot_be_read_is_passing_trouble(body: str) -> None:
    """DA-18. A proxy's garbage is not a made-up answer."""
    error, _ = await answer_of([Reply(200, body)], ask())
    assert isinstance(error, RetryableError)


async def test_no_server_at_all_is_passing_trouble() -> None:
    """DA-18. A refused connection is tried again."""
    with OpenAiServer([]) as server:
        url = server.url
    with pytest.raises(RetryableError):
        await Models(deadline=10).resolve(None, provider(url)).request(ask())


async def test_an_empty_answer_is_asked_again_without_a_schema_too() -> None:
    """AW-20. Silence is no answer."""
    answer, server = await answer_of([says(""), says("Refer.")], ask())
    assert answer.text == "Refer."
    assert len(server.requests) == 2


async def test_text_that_postgresql_cannot_hold_does_not_break_the_answer() -> None:
    """DA-22. NUL in a model's answer is replaced in what is kept."""
    answer, _ = await answer_of([says("a\x00b")], ask())
    assert "\x00" not in dumps(answer.parts)
    assert clean(answer.parts).replaced == 0


async def test_the_setting_moves_every_agent_to_a_real_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-15. CASEWORK_MODEL and CASEWORK_MODEL_BASE_URL alone, over a scripted provider."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAiServer([says("Hello.")]) as server:
        models = Models({"s": lambda _: pytest.fail("the script was asked")}, model="openai:big", base_url=server.url)
        scripted = LlmProvider.model_validate({"metadata": {"name": "s"}, "spec": {"type": "scripted", "script": "s"}})
        agent_model = models.for_agent(_agent("s"), {"s": scripted})
        assert agent_model.name == "openai:big"
        assert (await agent_model.request(ask())).text == "Hello."
        assert server.requests[0].body["model"] == "big"


async def test_max_tokens_goes_out_under_the_name_that_compatible_servers_know() -> None:
    """AW-19. Limits of the provider's manifest reach the wire."""
    _, server = await answer_of([says("x")], ask(), maxTokens=77)
    assert server.requests[0].body["max_tokens"] == 77


def _agent(provider_name: str) -> AiAgent:
    return AiAgent.model_validate({"metadata": {"name": "a"}, "spec": {"provider": provider_name}})


async def test_an_answer_too_large_to_keep_is_fatal_and_an_odd_name_is_told() -> None:
    """DA-18, AW-17. The same would come again; a tool that is none is the model's to be told."""
    large, _ = await answer_of([says("x" * 300_000)], ask())
    assert isinstance(large, FatalError)
    assert "text and output cannot be stored: a list of 300,0" in str(large)
    deep = '{"answer": ' * 70 + "1" + "}" * 70
    nested, _ = await answer_of([calls(("final_answer", deep))], ask(schema={"type": "object"}))
    assert isinstance(nested, FatalError)
    odd, _ = await answer_of([calls(("x" * 100, "{}"))], ask())
    assert odd.requests[0].name == "x" * 64
    assert odd.parts is None


@pytest.mark.parametrize(
    ("asked", "given"), [("99999", {300}), ("nan", {None, 0}), ("-5", {None, 0}), ("inf", {None, 300})]
)
async def test_a_providers_delay_is_bounded(asked: str, given: set[float | None]) -> None:
    """DA-18. A header cannot put a step to sleep for ever."""
    error, _ = await answer_of([fails(429, retry_after=asked)], ask())
    assert isinstance(error, RetryableError)
    assert error.retry_after in given
