"""What comes from outside into a local run: decisions of people, and signals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from casework import ids
from casework.errors import InputError
from casework.graph.commands import AwaitDecision, Decided, Wait
from casework.graph.manifests import Vertex
from casework.review import Ignored, OpenReview, judge
from casework.values import Plain

REVIEWER = "local"
"""Who decides where no other name is given."""


class NobodyError(InputError):
    """Nobody is there who could decide, or give a signal: the run cannot go on."""


@dataclass(frozen=True)
class Question:
    """What a person is asked at `path`. `decisions` are all names, `refused` those refused now, with the reason."""

    path: str
    node: str
    decisions: tuple[str, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    recommendation: Any = None
    """The last answer of an agent."""
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Outside(Protocol):
    """Answers for the world."""

    async def decide(self, question: Question) -> Decided:
        """A person's decision.

        Raises:
            NobodyError: nobody is there to decide.
        """
        ...

    async def signal(self, wait: Wait, path: str) -> Plain:
        """The payload of the signal `wait.signal`; returns when it comes, and is cancelled when time is up before.

        Raises:
            NobodyError: it can never come.
        """
        ...


def question_of(vertex: Vertex, command: AwaitDecision, path: str, recommendation: Any) -> Question:
    """The question that a HUMAN_APPROVAL asks."""
    schemas = {made.name: made.json_schema for made in vertex.decisions or () if made.json_schema}
    return Question(path, vertex.id, tuple(command.decisions), dict(command.refused), recommendation, schemas)


def check(question: Question, made: Decided, run_id: UUID) -> None:
    """Refuse a decision that does not count, by the rules that a durable run has.

    Raises:
        NobodyError: says why; there is no other answer.
    """
    review = str(ids.review_id(run_id, question.path))
    asked = OpenReview(review, question.decisions, question.refused, schemas=question.schemas)
    verdict = judge(asked, _Answer(review, made.decision, made.reason, made.reviewer))
    if isinstance(verdict, Ignored):
        raise NobodyError(f"{question.path}: {verdict.reason}", field="decision")


@dataclass(frozen=True)
class _Answer:
    """A decision as the rules of reviews read it."""

    review_id: str
    command: str
    reason: str
    reviewer: str
    decision_id: str = "local"
