"""Tasks and lines that tests put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from casework.process.declaring import bot_task
from casework.process.failures import ErrorEntity
from casework.process.lines import LOOP_RULE, BusinessProcess, Finalizer
from casework.process.monitors import ProcessingMonitor
from casework.process.tasks import (
    AgentTask,
    Change,
    Decision,
    JoinTask,
    ManualTask,
    PlainTask,
    Question,
    RunEnd,
    SplitTask,
    Task,
    TaskContext,
)
from casework.process.transactions import Transaction

FINALIZER = Finalizer("PROCESSING_IN_PROGRESS", "PROCESSING_COMPLETED")


def plain(name: str) -> type[Task]:
    """A task that notes that it was there."""

    @bot_task(name, effects=False)
    class Noted(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            return Change(data={"seen": [*transaction.data.get("seen", []), name]})

    return Noted


@bot_task("split")
class Split(SplitTask):
    """Makes a child of each of `parts`."""

    async def split(self, transaction: Transaction, ctx: TaskContext) -> Sequence[Mapping[str, Any]]:
        return [{"part": part} for part in transaction.data.get("parts", [])]


@bot_task("join")
class Join(JoinTask):
    """Gives the parent the parts of its children."""

    async def join(self, parent: Transaction, children: Sequence[Transaction], ctx: TaskContext) -> Change | None:
        return Change(data={"joined": [child.data["part"] for child in children]})


@bot_task("underwrite")
class Underwrite(AgentTask):
    """Runs an agent's workflow."""

    workflow = "loan-underwriting"

    async def input(self, transaction: Transaction) -> Mapping[str, Any]:
        return {"amount": transaction.data["amount"]}

    async def outcome(self, transaction: Transaction, end: RunEnd) -> Change | None:
        return Change(data={"outcome": end.outcome})


@bot_task("ask")
class Ask(ManualTask):
    """Asks a person."""

    async def question(self, transaction: Transaction, errors: Sequence[ErrorEntity]) -> Question:
        return Question("Is it good?", ("yes", "no"))

    async def decided(self, transaction: Transaction, decision: Decision) -> Change | None:
        return Change(data={"good": decision.decision == "yes"})


def process(*tasks: type[Task], **more: Any) -> BusinessProcess:
    """A process of the default set's Processing stage."""
    given = {"name": "processing", "monitor": ProcessingMonitor, "finalizer": FINALIZER, "rules": (LOOP_RULE,)}
    return BusinessProcess(tasks=tasks, **{**given, **more})
