"""The task of Processing: the workflow `loan-underwriting`, whose agent recommends and whose reviewer decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casework.errors import BusinessError
from casework.process import AgentTask, Change, RunEnd, Transaction, bot_task


@bot_task("underwrite")
class Underwrite(AgentTask):
    """Sets `decision`: `outcome` (approved or declined) and the run that brought it."""

    workflow = "loan-underwriting"

    async def input(self, transaction: Transaction) -> Mapping[str, Any]:
        """The application.

        Raises:
            BusinessError: there is none: a person let a mail go on that has none.
        """
        found: Any = transaction.data.get("application")
        if not found:
            raise BusinessError("the Transaction has no application to decide. Abort it", code="NO_APPLICATION")
        return dict(found)

    async def outcome(self, transaction: Transaction, end: RunEnd) -> Change | None:  # noqa: ARG002  # as the kind has it
        """Take the decision."""
        return Change(data={"decision": {"outcome": end.outcome, "run_id": str(end.run_id)}})
