"""Decisions that reach a run: judged on arrival on the run's own state, whatever the tables say.

Every decision gets one answer for good, kept by `decision_id`, so a repeated signal or update has no second effect.
Stale, duplicate and refused decisions are ignored, and recorded as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from casework.durable.contracts import Decision, DecisionReply
from casework.durable.workflows.journal import Journal, now
from casework.durable.workflows.signals import Signals
from casework.projection import DecisionEntry, StepEntry
from casework.review import Ignored, OpenReview, judge
from casework.values import content_hash

ANSWERS_BYTES = 256 * 1024
"""Of answers to ignored decisions, about, the newest that a run still knows after it has rolled over. An older one that
comes again is judged again."""


class Inbox:
    """The decisions of one run."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._open: OpenReview | None = None
        self._path = ""
        self._paths: dict[str, str] = {}
        self._answers: dict[str, tuple[str, DecisionReply]] = {}  # with the hash of the decision that it answers
        self.accepted: Decision | None = None
        """The decision that the graph has not acted on yet."""
        self._beside: dict[str, OpenReview] = {}
        self._given: dict[str, Decision] = {}
        self.signals = Signals(journal)
        """What WAIT nodes wait for."""

    def ask(self, path: str, review: OpenReview) -> None:
        """From now on `review` is the one that may be answered."""
        self._open, self._path, self.accepted = review, path, None
        self._paths[review.review_id] = path

    def ask_beside(self, path: str, review: OpenReview) -> None:
        """A branch asks: this one may be answered too, in any order. None is open when the run rolls over."""
        self._beside[review.review_id] = review
        self._paths[review.review_id] = path

    def given(self, review_id: str) -> Decision | None:
        """The decision on a branch's review, once there is one."""
        return self._given.get(review_id)

    def close(self) -> None:
        """No review is open any more."""
        self._open = None
        self._beside.clear()

    def carried(self) -> dict[str, Any]:
        """All of it, for the next part of the run."""
        return {
            "open": None if self._open is None else asdict(self._open),
            "path": self._path,
            "paths": self._paths,
            "answers": _remembered(self._answers),
            "accepted": None if self.accepted is None else asdict(self.accepted),
            "signals": self.signals.carried(),
        }

    def take_over(self, carried: Mapping[str, Any]) -> None:
        """Go on from what `carried` says."""
        if carried["open"] is not None:
            review = OpenReview(**carried["open"])
            self._open = replace(review, decisions=tuple(review.decisions))
        self._path, self._paths = carried["path"], dict(carried["paths"])
        for decision_id, known, accepted, reason in carried["answers"]:
            self._answers[decision_id] = known, DecisionReply(accepted, reason)
        if carried["accepted"] is not None:
            self.accepted = Decision(**carried["accepted"])
        self.signals.take_over(carried.get("signals", {}))

    def receive(self, decision: Decision) -> DecisionReply:
        """Judge a decision; the same one again gets the first answer, its id for another one is refused."""
        if decision.decision_id in self._answers:
            known, answer = self._answers[decision.decision_id]
            return answer if known == content_hash(decision) else self._used(decision)
        verdict = judge(self._beside.get(decision.review_id, self._open), decision)
        reply = DecisionReply(False, verdict.reason) if isinstance(verdict, Ignored) else DecisionReply(True)
        self._answers[decision.decision_id] = (content_hash(decision), reply)
        if reply.accepted:
            self._accept(decision)
        else:
            self._ignore(decision, reply.reason or "")
        return reply

    def _accept(self, decision: Decision) -> None:
        beside = self._beside.pop(decision.review_id, None)
        review, path = beside or self._open, self._paths[decision.review_id]
        assert review is not None
        outcome = review.outcomes.get(decision.command)
        self._record(path, decision, accepted=True, ignored=None, outcome=outcome)
        result = {"command": decision.command, "reason": decision.reason, "reviewer": decision.reviewer}
        self._journal.add(StepEntry(path, "decision", decision.command, "COMPLETED", now(), result))
        self._journal.event(path, "agent.decision_accepted", result)
        if beside is not None:
            self._given[decision.review_id] = decision
        else:
            self.accepted, self._open = decision, None

    def _ignore(self, decision: Decision, why: str) -> None:
        path = self._paths.get(decision.review_id)
        if path is not None:
            self._record(path, decision, accepted=False, ignored=why, outcome=None)
        data = {"review_id": decision.review_id, "command": decision.command, "reviewer": decision.reviewer, "why": why}
        self._journal.event(path or "", f"decision_ignored:{decision.decision_id}", data)

    def _used(self, decision: Decision) -> DecisionReply:
        """An id names one decision; its row is written, so another one under it is told by an event alone."""
        why = f"decision_id {decision.decision_id} was used for another decision. Send a new one."
        data = {"review_id": decision.review_id, "command": decision.command, "reviewer": decision.reviewer, "why": why}
        kind = f"decision_ignored:{decision.decision_id}:{content_hash(decision)[:8]}"
        self._journal.event(self._paths.get(decision.review_id, ""), kind, data)
        return DecisionReply(False, why)

    def _record(
        self, path: str, decision: Decision, *, accepted: bool, ignored: str | None, outcome: str | None
    ) -> None:
        self._journal.add(
            DecisionEntry(
                path=path,
                review_id=decision.review_id,
                decision_id=decision.decision_id,
                command=decision.command,
                reason=decision.reason,
                reviewer=decision.reviewer,
                at=now(),
                accepted=accepted,
                ignored=ignored,
                outcome=outcome,
            )
        )


def _remembered(answers: Mapping[str, tuple[str, DecisionReply]]) -> list[tuple[str, str, bool, str | None]]:
    """Oldest first: the decision's id, its hash, and its answer."""
    kept: list[tuple[str, str, bool, str | None]] = []
    room = ANSWERS_BYTES
    for decision_id, (known, reply) in reversed(list(answers.items())):
        if not reply.accepted:
            room -= len(decision_id) + len(known) + len(reply.reason or "")
            if room < 0:
                continue
        kept.append((decision_id, known, reply.accepted, reply.reason))
    return kept[::-1]
