"""Which steps of an AGENT's visit a fork keeps: those that were told before the step from which it goes on.

The order is that of the transcript. A step is told when its message is there: a model's answer, a tool's result, or the
error that the model was told. What was asked side by side is not in order of time, so only positions count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

_EXCHANGE = re.compile(r"^[^/]+/exchange\.(\d+)/")
_NEVER = 2**31


@dataclass(frozen=True)
class StepSeen:
    """A step of a visit as the ledger has it."""

    path: str
    kind: str
    state: str


@dataclass(frozen=True)
class MessageSeen:
    """A message, by the path of the step that wrote it."""

    path: str
    position: int
    role: str


Written = Mapping[str, list[MessageSeen]]
"""Messages by the step that wrote them, in order."""


def kept(steps: Collection[StepSeen], messages: Iterable[MessageSeen], before: Collection[str]) -> frozenset[str]:
    """The paths of the steps of one visit that are kept: those told before all the steps `before`.

    A model call that was not answered, and all after it, is never kept: it is made again. Nothing `before`: all that is
    told is kept.
    """
    written: dict[str, list[MessageSeen]] = {}
    for message in sorted(messages, key=lambda each: each.position):
        written.setdefault(message.path, []).append(message)
    told = {step.path for step in steps if _told(step, written.get(step.path, ()))}
    stops = [step for step in steps if step.path in before or (step.kind == "model" and step.path not in told)]
    limit = min((_place(step, written) for step in stops), default=_NEVER)
    return frozenset(path for path in told if written[path][-1].position < limit)


def _told(step: StepSeen, messages: Iterable[MessageSeen]) -> bool:
    roles = {each.role for each in messages}
    if step.kind == "model":
        return step.state == "COMPLETED" and "assistant" in roles
    return step.kind == "tool" and step.state != "STARTED" and "tool" in roles


def _place(step: StepSeen, written: Written) -> int:
    """Where the step begins in the transcript; of one that has left no message there, the first place that it can."""
    own = written.get(step.path)
    if own:
        return own[0].position
    number = _exchange(step.path)
    before = [
        message.position
        for path, messages in written.items()
        for message in messages
        if _exchange(path) < number or (step.kind == "tool" and _exchange(path) == number and message.role != "tool")
    ]
    return max(before, default=0) + 1


def _exchange(path: str) -> int:
    found = _EXCHANGE.match(path)
    return int(found[1]) if found else 0
