"""A process that fails what has no amount and holds what is to be held, and Error processes that deal with it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from casework.errors import BusinessError
from casework.process import (
    ERRORS,
    LOOP_RULE,
    PROCESSING,
    Answer,
    BusinessProcess,
    Change,
    ErrorEntity,
    ErrorTask,
    PlainTask,
    Remedy,
    TaskContext,
    Transaction,
    bot_task,
)
from tests.integration.durable.processes.waiting_app import AskAll

GATES: dict[str, asyncio.Event] = {}
"""What is held is let go by the gate that its data names."""


@bot_task("check", effects=False)
class Check(PlainTask):
    """Refuses what has no amount."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        if "amount" not in transaction.data:
            severity = transaction.data.get("severity", "ERROR")
            raise BusinessError("the amount is missing\nAsk the sender.", code="NO_AMOUNT", severity=severity)
        return None


@bot_task("hold", effects=False)
class Hold(PlainTask):
    """Waits at its gate."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        if gate := transaction.data.get("gate"):
            await GATES[gate].wait()
        return Change(data={"held": True})


@bot_task("mend")
class Mend(ErrorTask):
    """Repairs what it can without a person."""

    async def handle(
        self, transaction: Transaction, errors: Sequence[ErrorEntity], ctx: TaskContext
    ) -> Remedy | Change | None:
        if "guess" not in transaction.data:
            return None
        assert [error.code for error in errors] == ["NO_AMOUNT"]
        assert ctx.connection is not None
        into = transaction.data.get("into", "INTAKE_COMPLETED")
        return Remedy(Answer.CLONE, into=into, data={"amount": transaction.data["guess"]})


WORK = replace(PROCESSING, tasks=(Check, Hold), tray_size=5)
MENDING = BusinessProcess(
    name="errors", monitor=ERRORS.monitor, tasks=(Mend, AskAll), rules=(LOOP_RULE,), finalizer=ERRORS.finalizer
)
