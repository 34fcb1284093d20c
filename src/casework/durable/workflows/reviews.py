"""Questions to people: how one is asked, and those of branches, which are open side by side.

A run with branches is AWAITING_REVIEW while a question is open and every branch that is under way waits for a person.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from temporalio import workflow

from casework import ids
from casework.durable.workflows.casefile import CaseFile
from casework.durable.workflows.journal import now
from casework.graph import commands
from casework.graph.manifests import Vertex
from casework.graph.state import EngineState
from casework.projection import ReviewEntry
from casework.review import OpenReview
from casework.tasktree import current_node


def ask(
    file: CaseFile, place: EngineState, vertex: Vertex, command: commands.AwaitDecision, review_id: str
) -> OpenReview:
    """Tell the journal of a question that the running node asks; what may be answered to it."""
    path, made = current_node().path, vertex.decisions or ()
    note = "; ".join(sorted(set(command.refused.values()))) or None
    file.journal.add(
        ReviewEntry(
            path=path,
            review_id=review_id,
            node=command.node,
            turn=place.turn,
            decisions=tuple(command.decisions),
            at=now(),
            recommendation=file.journal.recommendation,
            note=note,
            refused=command.refused or None,
        )
    )
    file.journal.event(path, "agent.review_pending", {"review_id": review_id, "node": command.node, "note": note})
    return OpenReview(
        review_id,
        tuple(command.decisions),
        dict(command.refused),
        {each.name: each.outcome for each in made if each.outcome},
        {each.name: each.json_schema for each in made if each.json_schema},
    )


class People:
    """The people that branches of one visit wait for."""

    def __init__(self, file: CaseFile) -> None:
        self._file = file
        self._working = 0
        self._waiting = 0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Around a branch."""
        with self._counted(1, 0):
            yield

    async def decision(self, place: EngineState, vertex: Vertex, command: commands.AwaitDecision) -> commands.Decided:
        """Ask in the running node, and wait for the decision on this very question. It is a row before it counts."""
        file, path = self._file, current_node().path
        review_id = str(ids.review_id(UUID(file.start.run_id), path))
        file.inbox.ask_beside(path, ask(file, place, vertex, command, review_id))
        inbox, outbox = file.inbox, file.journal.outbox
        with self._counted(-1, 1):
            while inbox.given(review_id) is None:
                if len(outbox) and not outbox.travelling:
                    await file.operations.flush()
                await workflow.wait_condition(
                    lambda: inbox.given(review_id) is not None or (len(outbox) > 0 and not outbox.travelling)
                )
        await file.operations.flush()
        made = inbox.given(review_id)
        assert made is not None
        return commands.Decided(made.command, made.reason, made.reviewer)

    @contextmanager
    def _counted(self, working: int, waiting: int) -> Iterator[None]:
        self._count(working, waiting)
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            raise  # the run ends, or is dropped from memory: there is nothing to be told
        except BaseException:
            self._count(-working, -waiting)
            raise
        self._count(-working, -waiting)

    def _count(self, working: int, waiting: int) -> None:
        self._working += working
        self._waiting += waiting
        self._tell()

    def _tell(self) -> None:
        journal = self._file.journal
        if self._waiting and not self._working and journal.status == "RUNNING":
            journal.run("AWAITING_REVIEW")
        elif self._working and journal.status == "AWAITING_REVIEW":
            journal.run("RUNNING")
