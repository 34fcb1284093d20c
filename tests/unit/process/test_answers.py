"""What a review of a manual task offers: one word for each decision, and what each stands for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.process.lines import plain, process

from casework.durable.manual_tasks import MANUAL_TASK, manual_workflow
from casework.errors import ProcessDeclarationError
from casework.process import COMPLETED, DEFAULT_STATUSES, Answer, BusinessProcess, ErrorPolicy, StatusSet
from casework.process.admission import admit
from casework.process.answers import chosen, offered
from casework.process.monitor_runners import TransactionMonitorRunner
from casework.process.monitors import MonitorTask, TransactionMonitorTask
from casework.process.remedies import clonable
from casework.process.shipped import ERRORS, INTAKE, SUBMISSION
from casework.process.tasks import Decision, Question

WORK = admit(process(plain("a"), plain("b")))
ERROR_LINE = admit(ERRORS)
LINES = (WORK, ERROR_LINE, admit(INTAKE))
ALL = ErrorPolicy(resume=True, complete_by_hand=True)


def claims(status: str) -> type[TransactionMonitorTask]:
    return type("Claims", (TransactionMonitorTask,), {"status_to_monitor": status, "status_to_set": status})


def asked(*decisions: str) -> Question:
    return Question("what now?", decisions)


def test_an_error_process_offers_each_status_and_task_as_a_word() -> None:
    """BP-27: abort, clone into each status from which a process goes on, and the answers that the policy has put on."""
    submission = admit(SUBMISSION)
    words = offered(asked(*Answer), ERROR_LINE, ALL, [*LINES, submission])
    clones = ("clone-INTAKE_COMPLETED", "clone-PROCESSING_COMPLETED")
    assert words == ("abort", *clones, "resume-a", "resume-b", "complete")


def test_a_status_from_which_no_monitor_takes_is_not_offered() -> None:
    """BP-27: a clone there would stay for ever: neither where Intake puts its own, nor in the midst of a line."""
    assert offered(asked("abort", "clone"), ERROR_LINE, ALL, LINES) == ("abort", "clone-INTAKE_COMPLETED")
    assert offered(asked("abort", "clone"), ERROR_LINE, ALL, [ERROR_LINE, admit(INTAKE)]) == ("abort",)


def test_a_monitor_of_a_kind_of_its_own_may_take_from_where_a_move_leads_to_its_status() -> None:
    """BP-21: only its runner knows from where; one that names `status_to_monitor` takes from there."""
    own: dict[str, Any] = {"status_to_set": "SUBMISSION_IN_PROGRESS", "runner_class": TransactionMonitorRunner}
    told = own | {"status_to_monitor": "INTAKE_COMPLETED"}
    kinds = [type("Own", (MonitorTask,), own), type("Own", (MonitorTask,), told)]
    lines = [admit(BusinessProcess(name="own", monitor=kind)) for kind in kinds]
    found = [clonable(DEFAULT_STATUSES, [line]) for line in lines]
    assert found == [("PROCESSING_COMPLETED",), ("INTAKE_COMPLETED",)]


def test_what_the_policy_has_not_put_on_is_not_offered() -> None:
    """BP-26: resuming and completing by hand are off by default; own words of the form stay."""
    words = offered(asked(*Answer, "ask-the-customer"), ERROR_LINE, ErrorPolicy(), LINES)
    assert [word for word in words if not word.startswith("clone-")] == ["abort", "ask-the-customer"]


def test_elsewhere_the_words_are_the_tasks_own() -> None:
    """In the normal flow `clone` and `resume-x` mean what the task means by them."""
    assert offered(asked("clone", "resume-x"), WORK, ALL, LINES) == ("clone", "resume-x")
    assert chosen("resume-x", WORK) == Decision("resume-x")


@pytest.mark.parametrize(
    ("word", "decision"),
    [
        ("abort", Decision("abort", "why", "rita")),
        ("clone-INTAKE_COMPLETED", Decision("clone", "why", "rita", {"into": "INTAKE_COMPLETED"})),
        ("resume-check-amount", Decision("resume", "why", "rita", {"at": "check-amount"})),
        ("complete", Decision("complete", "why", "rita")),
        ("ask-the-customer", Decision("ask-the-customer", "why", "rita")),
    ],
)
def test_a_word_stands_for_a_decision(word: str, decision: Decision) -> None:
    """BP-27: what the answer asks for besides is in its word."""
    assert chosen(word, ERROR_LINE, reason="why", reviewer="rita") == decision


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (asked(), "has no decision to choose from"),
        (asked("resume"), "has no decision to choose from"),
        (asked("abort", "abort"), "'abort' is offered twice"),
        (asked("yes, pay"), "'yes, pay' is not usable"),
        (asked("a" * 64), "at most 63"),
        (asked("clone-later"), "begins as an answer of the platform does"),
        ("abort", "A manual task gave 'abort'"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(question: object, told: str) -> None:
    """It fails its Transaction with words that say what to change."""
    with pytest.raises(ProcessDeclarationError, match=told):
        offered(question, ERROR_LINE, ErrorPolicy(), LINES)


def test_the_longest_names_make_usable_words() -> None:
    """Names of tasks and statuses are as long as they may be: with the answer before them they are a decision's."""
    task, status = "t" * 56, "S" * 57
    statuses = StatusSet.of({status: COMPLETED}, initial=status)
    work = admit(BusinessProcess(name="work", monitor=claims(status), tasks=(plain(task),)), statuses)
    words = offered(asked("clone", "resume"), admit(ERRORS, statuses), ALL, [work])
    assert words == (f"clone-{status}", f"resume-{task}")
    assert manual_workflow(words).name == MANUAL_TASK
    with pytest.raises(ProcessDeclarationError, match="at most 56"):
        plain(task + "t")
    with pytest.raises(ProcessDeclarationError, match="at most 57"):
        StatusSet.of({status + "S": COMPLETED}, initial=status + "S")
