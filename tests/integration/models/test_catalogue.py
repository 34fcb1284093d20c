"""Which model a reference means, and what is said where it means none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from casework.agents import ModelAnswer, ModelRequest
from casework.errors import FatalError
from casework.graph.manifests import AiAgent, LlmProvider
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
        ("nobody:large", SCRIPTED, "does not say whose it is"),
        ("openai:", SCRIPTED, "does not say whose it is"),
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


def test_a_model_is_made_once() -> None:
    """One client, one pool of connections, for all runs of a worker."""
    models = Models({"one": script})
    assert models.resolve("openai:x") is models.resolve("openai:x")
    assert models.resolve("openai:x") is not models.resolve("openai:y")
