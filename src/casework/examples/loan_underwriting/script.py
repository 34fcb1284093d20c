"""The scripted underwriter: what a model would do, as a pure function of the conversation.

It asks for credit and income side by side, then for the ratio, then for the policy, and answers with what policy says.
After the reviewer's words it answers anew with them in the rationale; it gathers evidence again only if told to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from casework.agents import Message, ModelAnswer, ModelRequest, Request
from casework.values import loads

_APPLICANT = re.compile(r"^Applicant: (.+)$", re.MULTILINE)
_PURPOSE = re.compile(r"^Purpose: (.+)$", re.MULTILINE)
_ANEW = re.compile(
    r"\b(again|anew|afresh|refresh\w*|re-?check\w*|re-?fetch\w*|re-?run\w*|re-?verif\w*|update the evidence)\b", re.I
)
_QUOTED = 300


def underwriter(request: ModelRequest) -> ModelAnswer:
    """The next answer in the conversation: tools to call, or the recommendation."""
    application = next((m.content for m in request.messages if m.role == "user"), "")
    words = _reviewers_words(request.messages)
    results = _results(_since(request.messages, words))
    offered = {tool.name for tool in request.tools}
    for stage in _stages(_found(_APPLICANT, application), _found(_PURPOSE, application)):
        wanted = [(name, arguments) for name, arguments in stage if name in offered and name not in results]
        if wanted:
            return _asks(request, wanted)
    return _recommends(results, words[-1].content if words else None)


def _stages(applicant: str, purpose: str) -> tuple[Sequence[tuple[str, dict[str, Any]]], ...]:
    return (
        (
            ("credit_check", {"applicant_id": applicant}),
            ("income_verification", {"applicant_id": applicant}),
        ),
        (("debt_to_income_calc", {}),),
        (("policy_lookup", {"purpose": purpose}),),
    )


def _reviewers_words(messages: Sequence[Message]) -> list[Message]:
    """What a person said after the application; the application repeated is not such."""
    said = [message for message in messages if message.role == "user"]
    return [message for message in said[1:] if not _APPLICANT.search(message.content)]


def _since(messages: Sequence[Message], words: Sequence[Message]) -> Sequence[Message]:
    """The messages whose results still count: all, or those after a demand to look again."""
    demands = [message.position for message in words if _ANEW.search(message.content)]
    return [message for message in messages if message.position > max(demands, default=0)]


def _results(messages: Sequence[Message]) -> dict[str, Mapping[str, Any]]:
    """The latest answer of each tool; an error is kept under `error`."""
    return {message.tool: _read(message.content) for message in messages if message.role == "tool" and message.tool}


def _read(content: str) -> Mapping[str, Any]:
    try:
        value = loads(content)
    except ValueError:
        return {"error": content}
    return value if isinstance(value, dict) else {"error": content}


def _asks(request: ModelRequest, wanted: Sequence[tuple[str, dict[str, Any]]]) -> ModelAnswer:
    asked = sum(len(message.requests) for message in request.messages)
    calls = tuple(Request(f"call_{n}", name, arguments) for n, (name, arguments) in enumerate(wanted, asked + 1))
    return ModelAnswer(text=f"I call {' and '.join(name for name, _ in wanted)}.", requests=calls)


def _recommends(results: Mapping[str, Mapping[str, Any]], words: str | None) -> ModelAnswer:
    policy = results.get("policy_lookup", {"error": "policy_lookup was not available"})
    recommendation = policy.get("recommendation", "refer")
    parts = [_policy_says(policy), *_failures(results)]
    if words is not None:
        parts.append(f'The reviewer said: "{_shortened(words)}". That is taken into account; a person decides.')
    rationale = " ".join(parts)
    return ModelAnswer(text=rationale, output={"recommendation": recommendation, "rationale": rationale})


def _policy_says(policy: Mapping[str, Any]) -> str:
    if "recommendation" not in policy:
        return "Policy could not be applied, so a person must look at this."
    name = f"{policy.get('policy_name')}, version {policy.get('version')}"
    return f"Policy {name} says {policy['recommendation']}. {policy.get('rationale', '')}".strip()


def _failures(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        f"{name} failed: {_shortened(str(result['error']))}" for name, result in results.items() if "error" in result
    ]


def _found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1].strip() if match else "unknown"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _QUOTED else f"{line[:_QUOTED]}..."
