"""The Error process: analysis, the manual form, and each way in which a failed Transaction ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from tests.unit.process.lines import plain, process
from tests.unit.process.test_transactions import LATER, new

from casework.errors import BusinessError, InputError, NotFoundError, StateError
from casework.process import ABORTED, COMPLETED, DEFAULT_STATUSES, ERROR_IN_PROGRESS, HAS_ERROR, ErrorEntity
from casework.process.admission import admit
from casework.process.declaring import bot_task
from casework.process.lines import LOOP_RULE, BusinessProcess
from casework.process.policies import Answer, ErrorPolicy
from casework.process.remedies import remedied
from casework.process.shipped import ERRORS, INTAKE, AskAboutError
from casework.process.tasks import Change, ErrorTask, Remedy, TaskContext, TransactionalTask
from casework.process.transactions import Transaction, failed, moved
from casework.testing.answers import ScriptedReviewer
from casework.testing.processes import Project, ProjectFixture

A, B = plain("a"), plain("b")
ALL = ErrorPolicy(resume=True, complete_by_hand=True)
SKIPPED: list[str] = []


@bot_task("count")
class Count(TransactionalTask):
    """Counts its runs in the data, and hears where it is passed over."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return Change(data={"counted": transaction.data.get("counted", 0) + 1})

    async def on_skipped(self, transaction: Transaction, reason: str) -> None:
        SKIPPED.append(reason)


@bot_task("fail-once")
class FailOnce(TransactionalTask):
    """Fails until the data is mended."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        if not transaction.data.get("mended"):
            raise BusinessError(
                "amount is missing", code="NO_AMOUNT", severity=transaction.data.get("severity", "ERROR")
            )
        return None


WORK = process(Count, FailOnce, B, tray_size=5)


class AllAnswers(AskAboutError):
    answers = tuple(Answer)


AskAll = bot_task("ask-all")(AllAnswers)


Ended = Callable[..., tuple[Project, UUID]]


@pytest.fixture
def ended(casework_project: ProjectFixture) -> Ended:
    """A Transaction that fails; then everything goes on until nothing moves, with the decisions of the reviewer."""

    def run(errors: BusinessProcess = ERRORS, **data: Any) -> tuple[Project, UUID]:
        project = casework_project([WORK, errors], errors=ALL)
        uuid = project.add("INTAKE_COMPLETED", data)
        project.settle()
        return project, uuid

    return run


def test_a_process_that_is_not_there_is_named_with_those_that_are(casework_project: ProjectFixture) -> None:
    """What there is and the near name."""
    with pytest.raises(NotFoundError, match="In this application there is no process 'eror'; there are errors, proc"):
        casework_project([WORK, ERRORS], errors=ALL).run("eror")


def test_a_person_is_asked_with_the_form_and_aborts(ended: Ended, casework_reviewer: ScriptedReviewer) -> None:
    """The form says what failed, where, when and why; abort ends it, by a person."""
    casework_reviewer.decides("abort")
    project, uuid = ended()
    transaction = project[uuid]
    assert (transaction.status, transaction.straight_through, transaction.claim_id) == (ABORTED, False, None)
    (form,) = casework_reviewer.asked
    for part in (
        str(uuid),
        "PROCESSING_IN_PROGRESS",
        "BUSINESS, NO_AMOUNT",
        "processing, task fail-once",
        "2026-01-01",
    ):
        assert part in form.text
    assert [step.after for step in project.store.stages[2:]] == [HAS_ERROR, ERROR_IN_PROGRESS, ABORTED]


def test_the_rule_asks_nobody_about_a_warning(ended: Ended, casework_reviewer: ScriptedReviewer) -> None:
    """Whether a person is needed is a Rule's: a warning is ended by the Finalizer, and nobody is asked."""
    project, uuid = ended(severity="WARNING")
    assert (project[uuid].status, casework_reviewer.asked) == (ABORTED, [])
    assert project.store.stages[-1].by == "finalizer"


ASK_ALL = BusinessProcess(
    name="errors", monitor=ERRORS.monitor, tasks=(AskAll,), rules=(LOOP_RULE,), finalizer=ERRORS.finalizer
)


@bot_task("mend")
class Mend(ErrorTask):
    """Repairs without a person."""

    async def handle(
        self, transaction: Transaction, errors: Sequence[ErrorEntity], ctx: TaskContext
    ) -> Remedy | Change | None:
        assert [error.code for error in errors] == ["NO_AMOUNT"]
        return Remedy(Answer.CLONE, into="INTAKE_COMPLETED", data={"mended": True})


def test_a_repair_goes_on_in_a_clone(ended: Ended, casework_reviewer: ScriptedReviewer) -> None:
    """The failed Transaction is ABORTED and a new one takes its data over, mended, to the end of the line."""
    repaired = BusinessProcess(name="errors", monitor=ERRORS.monitor, tasks=(Mend,), finalizer=ERRORS.finalizer)
    project, uuid = ended(repaired, amount=5)
    original, clone = project.store.transactions.values()
    assert (original.uuid, original.status, casework_reviewer.asked) == (uuid, ABORTED, [])
    assert (clone.status, clone.data["amount"], clone.data["mended"]) == ("PROCESSING_COMPLETED", 5, True)
    assert clone.status_before_error is None


def test_it_resumes_at_a_task_where_the_policy_says_so(ended: Ended, casework_reviewer: ScriptedReviewer) -> None:
    """It goes on at the task named, in its own process; the tasks before are passed over, and told."""
    SKIPPED.clear()
    casework_reviewer.decides("resume", data={"at": "b"})
    project, uuid = ended(ASK_ALL)
    transaction = project[uuid]
    assert (transaction.status, transaction.skip_until) == ("PROCESSING_COMPLETED", None)
    assert (transaction.data["counted"], transaction.data["seen"]) == (1, ["b"])
    assert SKIPPED == ["it goes on at task 'b'"]


def test_it_is_completed_by_hand_where_the_policy_says_so(ended: Ended, casework_reviewer: ScriptedReviewer) -> None:
    """It is COMPLETED, marked as done by hand and as not straight through."""
    casework_reviewer.decides("complete")
    project, uuid = ended(ASK_ALL)
    transaction = project[uuid]
    assert (transaction.status, transaction.straight_through) == (COMPLETED, False)
    assert transaction.end_time is not None
    assert project.store.by_hand == {uuid}


HELD = moved(DEFAULT_STATUSES, failed(DEFAULT_STATUSES, new(data={"a": 1}, natural_key="m")), ERROR_IN_PROGRESS, LATER)
LINES = [admit(WORK), admit(ERRORS), admit(INTAKE)]


@pytest.mark.parametrize(
    ("transaction", "remedy", "policy", "error", "said"),
    [
        (new(), Remedy(Answer.ABORT), ALL, StateError, "has no error"),
        (
            HELD,
            Remedy(Answer.RESUME, at="b"),
            ErrorPolicy(),
            StateError,
            "resume is not on offer; there are abort, clone",
        ),
        (HELD, Remedy(Answer.COMPLETE), ErrorPolicy(), StateError, "complete is not on offer"),
        (HELD, Remedy(Answer.CLONE), ALL, InputError, "there is no status ''"),
        (
            HELD,
            Remedy(Answer.CLONE, into="PROCESSING_IN_PROGRESS"),
            ALL,
            InputError,
            "no Monitor of this application takes Transactions from it.*Choose one of INTAKE_COMPLETED",
        ),
        (HELD, Remedy(Answer.CLONE, into=COMPLETED), ALL, InputError, "no status 'COMPLETED'"),
        (HELD, Remedy(Answer.CLONE, into=HAS_ERROR), ALL, InputError, "no status 'HAS_ERROR'"),
        (HELD, Remedy(Answer.RESUME, at="analyse-error"), ALL, InputError, "no task of a process"),
        (HELD, Remedy(Answer.RESUME), ALL, InputError, "there are b, count, fail-once"),
    ],
)
def test_an_answer_that_cannot_be_given_is_refused(
    transaction: Transaction, remedy: Remedy, policy: ErrorPolicy, error: type[Exception], said: str
) -> None:
    """What is not on offer, and a status or task that is none, is refused with those that there are."""
    with pytest.raises(error, match=said):
        remedied(transaction, remedy, statuses=DEFAULT_STATUSES, policy=policy, lines=LINES, at=LATER)


def test_a_clone_is_one_and_has_no_past() -> None:
    """The same answer twice makes the same clone; it has no error, no claim and not the source's key."""
    first, second = (
        remedied(
            HELD,
            Remedy(Answer.CLONE, into="INTAKE_COMPLETED", data={"b": 2}),
            statuses=DEFAULT_STATUSES,
            policy=ALL,
            lines=LINES,
            at=LATER,
        )
        for _ in range(2)
    )
    assert first == second
    clone = first.clone
    assert clone is not None
    assert clone.uuid != HELD.uuid
    assert (clone.data, clone.natural_key, clone.status_before_error, clone.end_time) == (
        {"a": 1, "b": 2},
        None,
        None,
        None,
    )
    assert (first.transaction.status, first.transaction.natural_key) == (ABORTED, "m")


def test_a_fault_in_the_error_process_leaves_the_transaction_to_it(casework_project: ProjectFixture) -> None:
    """What fails in the Error process is HAS_ERROR again, with the status before the first error, and two records."""

    @bot_task("break")
    class Break(ErrorTask):
        async def handle(self, transaction: Transaction, errors: Sequence[ErrorEntity], ctx: TaskContext) -> Remedy:
            raise ConnectionError("down")

    broken = BusinessProcess(name="errors", monitor=ERRORS.monitor, tasks=(Break,), finalizer=ERRORS.finalizer)
    project = casework_project([WORK, broken])
    uuid = project.add("INTAKE_COMPLETED")
    project.run("processing")
    project.run("errors")
    assert (project[uuid].status, project[uuid].status_before_error) == (HAS_ERROR, "PROCESSING_IN_PROGRESS")
    assert [each.task for each in project.store.errors] == ["fail-once", "break"]


def test_each_failure_of_a_transaction_has_a_record_of_its_own(
    ended: Ended, casework_reviewer: ScriptedReviewer
) -> None:
    """It fails, resumes at the same task, and fails there again: two records, as each tray has steps of its own."""
    casework_reviewer.decides("resume", data={"at": "fail-once"}, times=1).decides("abort")
    project, uuid = ended(ASK_ALL)
    assert project[uuid].status == ABORTED
    assert [each.task for each in project.store.errors] == ["fail-once", "fail-once"]
    assert len({each.uuid for each in project.store.errors}) == 2
