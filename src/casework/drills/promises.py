"""What a scenario promises, and what was found: the report that is printed and that decides the exit code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Say = Callable[[str], None]


@dataclass(frozen=True)
class Promise:
    """A sentence, whether it held, and what was found."""

    text: str
    held: bool
    found: str = ""


class BrokenOffError(Exception):
    """A scenario cannot go on: what it waited for did not come. The message says what, and what was there instead."""


@dataclass
class Report:
    """One scenario: what it did, what it counted, and its promises."""

    name: str
    title: str
    say: Say = lambda text: None  # noqa: ARG005  # silent unless someone listens
    did: list[str] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)
    promises: list[Promise] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def held(self) -> bool:
        """Whether every promise held; with none, nothing was shown."""
        return bool(self.promises) and all(promise.held for promise in self.promises)

    def tell(self, text: str) -> None:
        """Something was done."""
        self.did.append(text)
        self.say(text)

    def promise(self, text: str, held: bool, found: object = "") -> None:
        """Record whether `text` held."""
        self.promises.append(Promise(text, held, str(found)))

    def to_plain(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return {
            "name": self.name,
            "title": self.title,
            "held": self.held,
            "did": list(self.did),
            "counts": self.counts,
            "promises": [
                {"text": promise.text, "held": promise.held, "found": promise.found} for promise in self.promises
            ],
            "seconds": round(self.seconds, 2),
        }
