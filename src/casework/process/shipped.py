"""The four processes that ship. A project takes each as it is, or with its own tasks: `replace(PROCESSING, tasks=...)`.

Each moves Transactions through its stage of the default statuses. The Error process looks at what failed, asks a person
where one is needed, and ends by ABORTED.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from casework.process.declaring import bot_task
from casework.process.failures import ErrorEntity, Severity
from casework.process.lines import FINALIZER, LOOP_RULE, BusinessProcess, Finalizer, Rule
from casework.process.monitors import ErrorMonitor, InputMonitorTask, ProcessingMonitor, SubmissionMonitor
from casework.process.policies import Answer
from casework.process.statuses import ABORTED, COMPLETED, ERROR_IN_PROGRESS
from casework.process.tasks import Change, Decision, ErrorTask, ManualTask, Question, Remedy, TaskContext
from casework.process.transactions import Transaction
from casework.values import instant


class NothingComes(InputMonitorTask[None]):
    """Heads the shipped Intake, into which nothing comes until a project names a Monitor of its own."""

    async def query_input_entities(self) -> Sequence[None]:
        """Nothing."""
        return ()

    async def save_input_entity(self, entity: None) -> Mapping[str, Any]:  # noqa: ARG002  # there is none
        """The data of no Transaction."""
        return {}


@bot_task("analyse-error")
class AnalyseError(ErrorTask):
    """Says whether a person is needed. Derive from it, with a name of your own, to repair what can be repaired."""

    async def handle(
        self,
        transaction: Transaction,  # noqa: ARG002  # for those that derive
        errors: Sequence[ErrorEntity],
        ctx: TaskContext,  # noqa: ARG002  # as above
    ) -> Remedy | Change | None:
        """A person is needed unless the last error is no more than a warning."""
        needed = not errors or errors[-1].severity is not Severity.WARNING
        return Change(data={"needs_person": needed})


@bot_task("ask-about-error")
class AskAboutError(ManualTask):
    """The manual error form. Of its `answers` those are on offer that the policy has on."""

    answers: ClassVar[tuple[Answer, ...]] = tuple(Answer)

    async def question(self, transaction: Transaction, errors: Sequence[ErrorEntity]) -> Question:
        """The form: what failed, where, when and why."""
        lines = [f"Transaction: {transaction.uuid}", f"Status before: {transaction.status_before_error}"]
        for error in errors[-1:]:
            lines += [
                f"Error type: {error.type}, {error.code}",
                f"Root transaction: {error.root}",
                f"Process: {error.process}, task {error.task}, attempt {error.attempt}",
                f"Time: {instant(error.failed)}",
                *dict.fromkeys((error.short, error.full)),
            ]
        return Question("\n".join(lines), tuple(self.answers))

    async def decided(self, transaction: Transaction, decision: Decision) -> Remedy | Change | None:  # noqa: ARG002
        """The answer as a Remedy; `data` of the decision has `into` for a clone, `at` for the task to resume at."""
        return Remedy(Answer(decision.decision), decision.data.get("into"), decision.data.get("at"))


INTAKE = BusinessProcess(
    name="intake", monitor=NothingComes, finalizer=Finalizer("INTAKE_IN_PROGRESS", "INTAKE_COMPLETED")
)
"""Takes data from outside, validates and prepares it."""
PROCESSING = BusinessProcess(
    name="processing",
    monitor=ProcessingMonitor,
    finalizer=Finalizer("PROCESSING_IN_PROGRESS", "PROCESSING_COMPLETED"),
)
"""Does the work."""
SUBMISSION = BusinessProcess(
    name="submission", monitor=SubmissionMonitor, finalizer=Finalizer("SUBMISSION_IN_PROGRESS", COMPLETED)
)
"""Brings the results together and submits them to other systems."""
ERRORS = BusinessProcess(
    name="errors",
    monitor=ErrorMonitor,
    tasks=(AnalyseError, AskAboutError),
    rules=(LOOP_RULE, Rule("analyse-error", "!data.needs_person", FINALIZER)),
    finalizer=Finalizer(ERROR_IN_PROGRESS, ABORTED),
)
"""Handles what the others raised."""
SHIPPED = (INTAKE, PROCESSING, SUBMISSION, ERRORS)
