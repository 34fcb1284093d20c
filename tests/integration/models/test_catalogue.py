"""Which model a reference means, and what is said where it means none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from casework.agents import ModelAnswer, ModelRequest, Request
from casework.errors import FatalError, RetryableError
from casework.graph.manifests import AiAgent, LlmProvider
from casework.models import catalogue
from casework.models.catalogue import Models


def script(request: ModelRequest) -> ModelAnswer:
    return ModelAnswer(text=f"asked {len(request.messages)}", output={"answer": 1})


def provider(**spec: Any) -> LlmProvider:
    return LlmProvider.model_validate({"metadata": {"name": "p"}, "spec": spec})


def agent(model: str | None = None) -> AiAgent:
    spec = {"provider": "p"} | ({"model": model} if model else {})
    return AiAgent.model_validate({"metadata": {"name": "a"}, "spec": spec})


SCRIPTED = provider(type="scripted", script="one")
OPENAI = provider(type="openai", defaultModel="small")


@pytest.mark.parametrize(
    ("setting", "agents", "runs", "from_provider", "expected"),
    [
        (None, None, None, SCRIPTED, "scripted:one"),
        (None, None, None, OPENAI, "openai:small"),
        (None, "large", None, OPENAI, "openai:large"),
        (None, "llama3:8b", None, OPENAI, "openai:llama3:8b"),
        (None, "scripted:one", None, OPENAI, "scripted:one"),
        ("openai:big", "large", None, OPENAI, "openai:big"),
        ("openai:big", None, None, SCRIPTED, "openai:big"),
        ("openai:big", "large", "scripted:one", OPENAI, "scripted:one"),
        (None, None, "openai-responses:x", SCRIPTED, "openai-responses:x"),
    ],
)
def test_the_nearest_word_counts(
    setting: str | None, agents: str | None, runs: str | None, from_provider: LlmProvider, expected: str
) -> None:
    """DA-7, DA-15, AW-16. The run's model, then the setting, then the agent's, then the provider's default."""
    models = Models({"one": script}, model=setting)
    assert models.for_agent(agent(agents), {"p": from_provider}, runs).name == expected


@pytest.mark.parametrize(
    ("reference", "from_provider", "says"),
    [
        ("scripted:onne", SCRIPTED, "no script 'onne'. Did you mean 'one'?"),
        ("large", SCRIPTED, "'openai:large'"),
        ("nobody:large", SCRIPTED, "there is no provider 'nobody'"),
        ("nobody:large", None, "there is no provider 'nobody'"),
        ("opnai:large", SCRIPTED, "Did you mean 'openai'?"),
        ("openai:", SCRIPTED, "the model's name is missing"),
        ("openai: ", OPENAI, "the model's name is missing"),
        ("scripted:", None, "the model's name is missing"),
        (":large", OPENAI, "the provider's name is missing"),
        (None, provider(type="openai"), "No model is named"),
        (None, None, "No model is named"),
    ],
)
def test_a_reference_without_meaning_is_refused(
    reference: str | None, from_provider: LlmProvider | None, says: str
) -> None:
    """DA-15. What, which value, what to do."""
    with pytest.raises(FatalError) as caught:
        Models({"one": script}).resolve(reference, from_provider)
    assert says in str(caught.value)


async def test_a_missing_key_names_its_variable_or_file_and_no_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """AW-19. Keys come from the environment or a file; naming a model needs none, asking it does."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    ask = ModelRequest("s", ())
    with pytest.raises(FatalError, match="Set OPENAI_API_KEY"):
        await Models().resolve("openai:x").request(ask)
    with pytest.raises(FatalError, match="SOME_KEY is not set"):
        await Models().resolve("openai:x", provider(type="openai", keyRef={"env": "SOME_KEY"})).request(ask)
    there = {"file": str(tmp_path / "none")}
    with pytest.raises(FatalError, match="cannot be read"):
        await Models().resolve("openai:x", provider(type="openai", keyRef=there)).request(ask)
    with pytest.raises(FatalError, match="needs a package that is not installed"):
        await Models().resolve("anthropic:x").request(ask)


async def test_a_script_that_breaks_or_answers_wrongly_fails_the_run() -> None:
    """AW-8. A model failure is a failure, never an answer that flows on."""

    def broken(request: ModelRequest) -> ModelAnswer:
        raise KeyError("x")

    models = Models({"one": script, "broken": broken})
    with pytest.raises(FatalError, match="scripted:broken failed: KeyError"):
        await models.resolve("scripted:broken").request(ModelRequest("s", ()))
    schema = {"type": "object", "required": ["recommendation"]}
    with pytest.raises(FatalError, match="'recommendation' is a required property"):
        await models.resolve("scripted:one").request(ModelRequest("s", (), output_schema=schema))
    outside = {"$ref": "http://127.0.0.1:1/schema.json"}
    with pytest.raises(FatalError, match="output schema is not usable"):
        await models.resolve("scripted:one").request(ModelRequest("s", (), output_schema=outside))


def _nested(depth: int) -> Any:
    made: Any = []
    for _ in range(depth):
        made = [made]
    return made


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ModelAnswer(output=CYCLE), "nesting deeper than 100"),
        (ModelAnswer(output=_nested(70)), "nesting deeper than 64"),
        (ModelAnswer(output=object()), "output cannot be stored: object"),
        (ModelAnswer(text="x" * 300_000), "text and output cannot be stored: a list of 300,0"),
        (ModelAnswer(text="x" * 200_000, output="x" * 200_000), "over the limit of 262,144"),
        (ModelAnswer(requests=(Request("1", "t", _nested(70)),)), "arguments of tool call 1"),
        (ModelAnswer(requests=(Request("1", "t", CYCLE),)), "arguments of tool call 1"),
        (ModelAnswer(requests=(Request("1", "t", {"a": "x" * 300_000}),)), "of 300,0"),
        (ModelAnswer(requests=(Request("1" * 201, "t", {}),)), "the id of tool call 1 has 201 characters"),
        ("words", "gave str, not a ModelAnswer"),
    ],
)
async def test_an_answer_that_cannot_be_kept_fails_the_run(answer: Any, says: str) -> None:
    """DA-18. Asking again would give the same; field and size are named."""
    model = Models({"one": lambda _: answer}).resolve("scripted:one")
    with pytest.raises(FatalError) as caught:
        await model.request(ModelRequest("s", ()))
    assert says in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("name", "kept"), [("", "unnamed"), (" ", "unnamed"), ("x" * 5_000, "x" * 64), ("a\x00", "a␀")]
)
async def test_an_odd_tool_name_is_kept_for_the_model_to_be_told(name: str, kept: str) -> None:
    """AW-17. It can be stored and sent back; the provider's own form of it cannot."""
    given = ModelAnswer(requests=(Request("1", name, {}),), parts={"kind": "response"})
    model = Models({"one": lambda _: given}).resolve("scripted:one")
    answer = await model.request(ModelRequest("s", ()))
    assert answer.requests[0].name == kept
    assert answer.parts is None


async def test_a_scripts_own_error_is_bounded_and_its_delay_too() -> None:
    """DA-18. A script may say the oddest things."""

    def busy(_: ModelRequest) -> ModelAnswer:
        raise RetryableError("x" * 10_000, retry_after=1e9)

    def leaves(_: ModelRequest) -> ModelAnswer:
        raise SystemExit(3)

    models = Models({"busy": busy, "leaves": leaves})
    with pytest.raises(RetryableError) as caught:
        await models.resolve("scripted:busy").request(ModelRequest("s", ()))
    assert caught.value.retry_after == 300
    assert len(str(caught.value)) < 2_200
    with pytest.raises(FatalError, match="SystemExit: 3"):
        await models.resolve("scripted:leaves").request(ModelRequest("s", ()))


FIRST_USES = """
import asyncio, threading
from casework.agents import ModelRequest
from casework.errors import FatalError, RetryableError
from casework.models.catalogue import Models

async def ask(reference):
    try:
        await Models(base_url="http://127.0.0.1:9/v1").resolve(reference).request(ModelRequest("s", ()))
    except (FatalError, RetryableError) as error:
        said.append(str(error))

said = []
references = ["openai:x", "anthropic:x", "groq:x", "openai-responses:x", "mistral:x"] * 2
threads = [threading.Thread(target=lambda r=r: asyncio.run(ask(r))) for r in references]
[each.start() for each in threads]
[each.join() for each in threads]
assert len(said) == len(references), said
assert not [each for each in said if "partially" in each or "attribute" in each], said
"""


def test_first_uses_at_once_import_the_provider_layer_once() -> None:
    """DA-15. Threads do not meet modules that others have half imported."""
    done = subprocess.run([sys.executable, "-c", FIRST_USES], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


async def test_a_half_made_module_is_passing_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-18. Whoever imports it finishes in a moment."""

    def half_made(*_: object) -> Any:
        raise ImportError("cannot import name 'x' from partially initialized module 'y'")

    monkeypatch.setattr(catalogue, "_any", half_made)
    with pytest.raises(RetryableError, match="cannot be loaded yet"):
        await Models().resolve("openai-responses:x").request(ModelRequest("s", ()))


def test_a_model_is_made_once() -> None:
    """One client, one pool of connections, for all runs of a worker."""
    models = Models({"one": script})
    assert models.resolve("openai:x") is models.resolve("openai:x")
    assert models.resolve("openai:x") is not models.resolve("openai:y")
