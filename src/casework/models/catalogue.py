"""Which model a reference means.

A reference is `scripted:NAME` (a script of the App), `openai:MODEL` (chat completions, at any compatible address),
`PROVIDER:MODEL` for any other that pydantic-ai knows, or a bare model name, which belongs to the agent's provider.
What counts, first to last: the run's own model, the setting CASEWORK_MODEL, the agent's, the provider's default.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from casework.agents.model import LanguageModel
from casework.errors import FatalError, RetryableError
from casework.graph.manifests import AiAgent, LlmProvider
from casework.models.layer import LAYER, is_half_made
from casework.models.provider import DEADLINE, BuiltModel, ProviderModel, ProviderOptions
from casework.models.scripted import Script, ScriptedModel
from casework.values import content_hash

CONNECT_TIMEOUT = 10.0
"""Seconds to reach an address: one that is not there should not use up the attempt."""

_OWN = ("scripted", "openai")
_INSTALL = "Install 'casework[models]', or the provider's own package."
_NO_KEY = "not-set"
"""Sent where an address needs no key: the client insists on one."""


class Models:
    """All models of an application. Each is made once and used again.

    `model` overrides the model of every agent (CASEWORK_MODEL). `base_url` is where `openai:` models are asked when
    their provider names no address (CASEWORK_MODEL_BASE_URL, else OPENAI_BASE_URL). `deadline` is for one answer,
    `connect_timeout` for reaching an `openai:` address, both in seconds.
    """

    def __init__(
        self,
        scripts: Mapping[str, Script] | None = None,
        *,
        model: str | None = None,
        base_url: str | None = None,
        deadline: float = DEADLINE,
        connect_timeout: float = CONNECT_TIMEOUT,
    ) -> None:
        self._scripts = dict(scripts or {})
        self._model = model or None
        self._base_url = base_url or None
        self._deadline = deadline
        self._connect_timeout = connect_timeout
        self._made: dict[str, LanguageModel] = {}

    def for_agent(
        self, agent: AiAgent, providers: Mapping[str, LlmProvider], model: str | None = None
    ) -> LanguageModel:
        """The model of an agent; `model` is the run's own choice.

        Raises:
            FatalError: the agent's provider is not among `providers`, or the reference means nothing.
        """
        provider = providers.get(agent.spec.provider)
        if provider is None:
            raise FatalError(f"Agent '{agent.name}' names provider '{agent.spec.provider}', which is not applied.")
        return self.resolve(model or self._model or agent.spec.model, provider)

    def resolve(self, reference: str | None = None, provider: LlmProvider | None = None) -> LanguageModel:
        """The model that `reference` means, seen from `provider`; None means the provider's default.

        Raises:
            FatalError: there is no such script or provider, or a model name is missing.
        """
        kind, name = self._parsed(reference, provider)
        own = provider if provider is not None and provider.spec.type == kind else None
        key = content_hash([kind, name, None if own is None else own.spec])
        if key not in self._made:
            self._made[key] = self._scripted(name) if kind == "scripted" else self._provided(kind, name, own)
        return self._made[key]

    def _parsed(self, reference: str | None, provider: LlmProvider | None) -> tuple[str, str]:
        spec = provider.spec if provider is not None else None
        text = (reference or "").strip()
        if not text:
            text = (spec.script if spec.type == "scripted" else spec.default_model) or "" if spec is not None else ""
            if not text or spec is None:
                raise FatalError(
                    "No model is named. Set the agent's model, its provider's defaultModel or CASEWORK_MODEL."
                )
            return spec.type, text
        kind, colon, name = text.partition(":")
        if colon and (kind in _OWN or (spec and kind == spec.type) or _known(kind)):
            if not name.strip():
                raise FatalError(f"Model {text!r:.200}: the model's name is missing. Write '{kind}:MODEL'.")
            return kind, name
        if colon and not kind.strip():
            raise FatalError(f"Model {text!r:.200}: the provider's name is missing. Write 'openai{text:.200}', say.")
        if colon and (spec is None or spec.type == "scripted"):
            near = difflib.get_close_matches(kind.casefold(), _OWN, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise FatalError(
                f"Model {text!r:.200}: there is no provider {kind!r:.100}.{hint} Write 'openai:MODEL', 'scripted:NAME' "
                "or another that pydantic-ai knows."
            )
        if spec is None or spec.type == "scripted":
            raise FatalError(
                f"Model {text!r} does not say whose it is. Write 'openai:{text}', 'scripted:NAME' or 'PROVIDER:MODEL'."
            )
        # Names such as `llama3:8b` have a colon of their own.
        return spec.type, text

    def _scripted(self, name: str) -> LanguageModel:
        if name not in self._scripts:
            near = difflib.get_close_matches(name, self._scripts, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            known = ", ".join(sorted(self._scripts)) or "none"
            raise FatalError(f"There is no script {name!r}.{hint} Scripts of the App: {known}.")
        return ScriptedModel(name, self._scripts[name])

    def _provided(self, kind: str, name: str, provider: LlmProvider | None) -> LanguageModel:
        def build() -> BuiltModel:
            try:
                return self._openai(name, provider) if kind == "openai" else _any(kind, name, provider)
            except ImportError as error:
                if is_half_made(error):
                    raise RetryableError(f"{kind}:{name} cannot be loaded yet: {error}") from None
                raise FatalError(f"{kind}:{name} needs a package that is not installed: {error}. {_INSTALL}") from None

        return ProviderModel(f"{kind}:{name}", build, self._options(provider))

    def _options(self, provider: LlmProvider | None) -> ProviderOptions:
        if provider is None:
            return ProviderOptions(deadline=self._deadline)
        spec = provider.spec
        prices = (
            {}
            if spec.prices is None
            else {
                "input_per_million": spec.prices.input_per_million,
                "output_per_million": spec.prices.output_per_million,
            }
        )
        return ProviderOptions(spec.temperature, spec.max_tokens, deadline=self._deadline, **prices)

    def _openai(self, name: str, provider: LlmProvider | None) -> BuiltModel:
        import httpx2  # noqa: PLC0415 - heavy, as the following
        from openai import AsyncOpenAI  # noqa: PLC0415
        from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
        from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

        own = provider.spec.base_url if provider is not None else None
        address = own or self._base_url or os.environ.get("OPENAI_BASE_URL") or None
        key = _key(provider) or os.environ.get("OPENAI_API_KEY", "").strip() or None
        if key is None and address is None:
            raise FatalError(f"openai:{name} needs a key. Set OPENAI_API_KEY, or keyRef in the provider's manifest.")
        timeout = httpx2.Timeout(self._deadline, connect=self._connect_timeout)
        client = AsyncOpenAI(api_key=key or _NO_KEY, base_url=address, max_retries=0, timeout=timeout)
        if address is None:
            return BuiltModel(OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client)), key)
        compatible = OpenAICompatibleProvider("openai-compatible", openai_client=client)
        # Compatible servers know `max_tokens`; the newer name is OpenAI's own.
        profile = {"openai_chat_supports_max_completion_tokens": False}
        return BuiltModel(OpenAIChatModel(name, provider=compatible, profile=profile), key)  # type: ignore[arg-type]


def _known(kind: str) -> bool:
    if not kind.strip():
        return False
    with LAYER:
        try:
            from pydantic_ai.providers import infer_provider_class  # noqa: PLC0415 - heavy, only for other providers

            infer_provider_class(kind)
        except ValueError:
            return False
        except ImportError:
            # Known, but its package is not here: that is said when it is asked.
            return True
        return True


def _key(provider: LlmProvider | None) -> str | None:
    """The key that the provider's manifest refers to; None where it refers to none."""
    ref = provider.spec.key_ref if provider is not None else None
    if provider is None or ref is None:
        return None
    if ref.env is not None:
        found = os.environ.get(ref.env, "").strip()
        if not found:
            raise FatalError(
                f"Provider '{provider.name}': environment variable {ref.env} is not set. Set it to the key."
            )
        return found
    try:
        found = Path(ref.file or "").read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise FatalError(
            f"Provider '{provider.name}': key file {ref.file} cannot be read ({type(error).__name__})."
        ) from None
    if not found:
        raise FatalError(f"Provider '{provider.name}': key file {ref.file} is empty.")
    return found


def _any(kind: str, name: str, provider: LlmProvider | None) -> BuiltModel:
    from pydantic_ai.models import infer_model  # noqa: PLC0415 - heavy
    from pydantic_ai.providers import infer_provider_class  # noqa: PLC0415

    key = _key(provider)
    base_url = provider.spec.base_url if provider is not None else None
    given: dict[str, Any] = {k: v for k, v in (("api_key", key), ("base_url", base_url)) if v is not None}
    try:
        if not given:
            return BuiltModel(infer_model(f"{kind}:{name}"), key)
        return BuiltModel(infer_model(f"{kind}:{name}", lambda known: infer_provider_class(known)(**given)), key)
    except TypeError:
        raise FatalError(
            f"Provider {kind!r} takes no {' and '.join(given)}. Use its own environment variables."
        ) from None
