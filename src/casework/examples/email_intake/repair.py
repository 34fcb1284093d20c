"""The tasks of the Error process: what has one clear reading is repaired, about everything else a person is asked."""

from __future__ import annotations

from collections.abc import Sequence

from casework.errors import BusinessError
from casework.examples.email_intake import applications
from casework.examples.email_intake.intake import fields_of
from casework.process import Answer, Change, ErrorEntity, ErrorTask, Remedy, TaskContext, Transaction, bot_task


@bot_task("repair-application")
class RepairApplication(ErrorTask):
    """Clones an application whose amount can be read; the clone goes on behind Intake and says what was repaired."""

    async def handle(
        self,
        transaction: Transaction,
        errors: Sequence[ErrorEntity],
        ctx: TaskContext,  # noqa: ARG002  # as the kind has it
    ) -> Remedy | Change | None:
        """A Remedy, or word that a person is needed."""
        made = applications.repaired(fields_of(transaction)) if errors and errors[-1].code == "BAD_AMOUNT" else None
        if made is None:
            return Change(data={"needs_person": True})
        fields, note = made
        try:
            applications.validated(fields)
        except BusinessError:
            return Change(data={"needs_person": True})
        if transaction.data.get("differ"):  # which of two to repair is a person's word
            return Change(data={"needs_person": True})
        application = applications.normalised(fields)
        return Remedy(
            Answer.CLONE, into="INTAKE_COMPLETED", data={"fields": fields, "application": application, "repaired": note}
        )
