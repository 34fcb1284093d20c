"""Admission of processes: what holds becomes a Line, and each mistake is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from tests.unit.process.lines import Ask, Join, Split, Underwrite, plain, process
from tests.unit.process.test_transactions import new

from casework.errors import ExpressionError, ProcessDeclarationError
from casework.process import ABORTED, ERROR_IN_PROGRESS, StatusSet
from casework.process.admission import admit, admit_all
from casework.process.declaring import bot_task
from casework.process.lines import LOOP_RECORD, LOOP_RULE, Finalizer, Line, Rule, record_of
from casework.process.monitors import ErrorMonitor, InputMonitorTask, TransactionMonitorTask
from casework.process.schedules import half_days

A, B, C = plain("a"), plain("b"), plain("c")


def test_a_process_is_a_line_of_stations() -> None:
    """BP-6. Monitor, tasks and Finalizer in order; without a Rule that holds a Transaction goes to the next station."""
    line = admit(process(A, B, Split, C, Join))
    assert line.stations == ("monitor", "a", "b", "split", "c", "join", "finalizer", "end")
    assert line.route("a", record_of(new())) == "b"
    assert line.route("finalizer", record_of(new())) == "end"
    assert line.shape.join_behind("split") == "join"
    assert line.shape.join_behind("join") is None


def test_rules_route_onward_elsewhere_and_back() -> None:
    """BP-6. Rules are CEL over the record; the first that holds counts: onward, past a task, back, out of the line."""
    rules = (
        LOOP_RULE,
        Rule("monitor", "transaction.priority > 5", "c"),
        Rule("b", "data.tries < 3", "a"),
        Rule("b", "data.tries == 7", "end"),
        Rule("b", 'transaction.status == "INTAKE_IN_PROGRESS" && data.tries > 7', "finalizer"),
    )
    line = admit(process(A, B, C, rules=rules))
    assert line.route("monitor", LOOP_RECORD) == "monitor"
    assert line.route("monitor", record_of(new())) == "a"
    assert line.route("monitor", record_of(new(priority=6))) == "c"
    assert [line.route("b", record_of(new(data={"tries": tries}))) for tries in (2, 3, 7, 9)] == [
        "a",
        "c",
        "end",
        "finalizer",
    ]
    with pytest.raises(ExpressionError, match="tries"):
        line.route("b", record_of(new()))


def refusal(*tasks: Any, statuses: StatusSet | None = None, **more: Any) -> str:
    with pytest.raises(ProcessDeclarationError) as raised:
        admit(process(*tasks, **more), *([statuses] if statuses else []))
    return str(raised.value)


@pytest.mark.parametrize(
    "rules",
    [
        (),
        (Rule("a", "true", "b"),),
        (Rule("monitor", "_sys_repeat", "a"),),
        (Rule("monitor", "true", "a"), LOOP_RULE),
        (Rule("monitor", "!_sys_repeat", "monitor"),),
    ],
)
def test_a_process_whose_monitor_would_run_once_is_refused(rules: tuple[Rule, ...]) -> None:
    """No Rule that takes the loop record back to the Monitor, or one before it that leads it away: refused at start."""
    said = refusal(A, B, rules=rules)
    assert "no Rule routes the loop record (_sys_repeat) back to the Monitor" in said
    assert "Add Rule('monitor', '_sys_repeat', 'monitor')" in said


def test_a_rule_that_the_loop_record_breaks_is_refused() -> None:
    """A Rule over a Transaction's fields before that of the loop record fails over it, and is told so at start."""
    said = refusal(A, B, rules=(Rule("monitor", "transaction.priority > 5", "b"), LOOP_RULE))
    assert "the loop record fails at a Rule after the Monitor" in said


@pytest.mark.parametrize("task", [Underwrite, Ask])
def test_tasks_that_wait_travel_alone(task: Any) -> None:
    """A process with agent or manual tasks has tray_size 1; with more it is refused, naming the task."""
    admit(process(task))
    said = refusal(A, task, tray_size=2)
    assert "tray_size is 2, and task" in said
    assert "Set tray_size=1" in said


class Unset(TransactionMonitorTask):
    status_to_set = "PROCESSING_IN_PROGRESS"


class Illegal(TransactionMonitorTask):
    status_to_monitor = "INTAKE_IN_PROGRESS"
    status_to_set = "PROCESSING_IN_PROGRESS"


class Late(InputMonitorTask[str]):
    status_to_set = "INTAKE_COMPLETED"


@pytest.mark.parametrize(
    ("tasks", "more", "said"),
    [
        ((A, A), {}, "task 'a' stands in it twice"),
        ((A, object), {}, "object is no Task. Decorate its class"),
        ((A, B()), {}, "an object of Noted is given. Give the class itself"),
        ((A,), {"rules": LOOP_RULE}, "rules is Rule alone"),
        ((A,), {"finalizer": Finalizer("INTAKE_COMPLETED", "PROCESSING_IN_PROGRESS")}, "in which Monitor"),
        ((A,), {"name": "Intake"}, "process name 'Intake' is not usable"),
        ((A,), {"monitor": Line}, "is no Monitor"),
        ((A,), {"tray_size": 0}, "tray_size is 0"),
        ((A,), {"tray_size": True}, "tray_size is True"),
        ((A, B), {"rules": (LOOP_RULE, Rule("a", "true", "bb"))}, "there is no station 'bb'"),
        ((A, B), {"rules": (LOOP_RULE, Rule("aa", "true", "b"))}, "there is no task 'aa'"),
        ((A, B), {"rules": (LOOP_RULE, Rule("finalizer", "true", "a"))}, "there is no task 'finalizer'"),
        ((A, B), {"rules": (LOOP_RULE, Rule("a", "amount > 5", "b"))}, "amount"),
        ((A, B), {"rules": (LOOP_RULE, Rule("a", "data.x >", "b"))}, "the rule after 'a'"),
        ((A, B), {"rules": (LOOP_RULE, Rule("a", "1 + 1", "b"))}, "gives INT, not true or false"),
        ((A, B), {"rules": (LOOP_RULE, Rule("a", "true", "monitor"))}, "leads back to the Monitor"),
        ((A, B, C), {"rules": (LOOP_RULE, Rule("a", "true", "c"))}, "task 'b' is never reached"),
        ((A, B), {"rules": (LOOP_RULE, Rule("a", "true", "end"))}, "the Finalizer is never reached"),
        ((A, B), {"rules": (LOOP_RULE, Rule("b", "true", "a"))}, "task 'b' has no way to the end"),
        ((A,), {"monitor": Unset}, "Unset has no status_to_monitor"),
        ((A,), {"monitor": Illegal}, "cannot go from status INTAKE_IN_PROGRESS to PROCESSING_IN_PROGRESS"),
        ((A,), {"monitor": Late}, "cannot begin in status INTAKE_COMPLETED"),
        ((A,), {"finalizer": Finalizer("PROCESSING_IN_PROGRES", "COMPLETED")}, "There is no status|Did you mean"),
        ((A,), {"finalizer": Finalizer("PROCESSING_IN_PROGRESS", "COMPLETED")}, "the Finalizer: A Transaction cannot"),
    ],
)
def test_what_does_not_hold_is_named(tasks: tuple[Any, ...], more: dict[str, Any], said: str) -> None:
    """Each mistake in a process is named, with the process and what to do."""
    found = refusal(*tasks, **more)
    assert any(each in found for each in said.split("|")), found
    assert found.startswith("Process ")


def test_a_forgotten_comma_is_named() -> None:
    """`tasks=(A)` is A alone and no tuple."""
    alone: Any = A
    with pytest.raises(ProcessDeclarationError, match=r"tasks is Noted alone.* a comma: tasks=\(Noted,\)"):
        admit(replace(process(), tasks=alone))


def test_all_problems_are_told_at_once() -> None:
    """A process with several mistakes is refused once, and so is a project."""
    said = refusal(A, Ask, tray_size=5, finalizer=Finalizer("PROCESSING_IN_PROGRESS", "COMPLETED"))
    assert len(said.splitlines()) == 2
    good = process(A)
    assert list(admit_all([good, process(B, name="other")])) == ["processing", "other"]
    with pytest.raises(ProcessDeclarationError) as raised:
        admit_all([good, good, process(B, name="other", tray_size=0)])
    assert "'processing': the name is used twice" in str(raised.value)
    assert "'other': tray_size is 0" in str(raised.value)


def test_an_error_process_is_a_line_too() -> None:
    """The Error process is headed by the Error monitor, and ends by ABORTED."""
    ends = Finalizer(ERROR_IN_PROGRESS, ABORTED)
    assert admit(process(A, name="errors", monitor=ErrorMonitor, finalizer=ends)).handles_errors
    assert not admit(process(A)).handles_errors


def test_a_line_tells_who_may_still_come_onto_it() -> None:
    """BP-8. By status and claim: what can still come to the Monitor's status, or is on the line in another tray."""
    line, ours, other = Line(process(A)), UUID(int=1), UUID(int=2)
    may = {
        "INTAKE_IN_PROGRESS": True,
        "INTAKE_COMPLETED": True,
        "PROCESSING_IN_PROGRESS": False,
        "PROCESSING_COMPLETED": False,
        "HAS_ERROR": False,
    }
    assert {status: line.may_bring(replace(new(), status=status), ours) for status in may} == may
    claimed = [replace(new(), status="PROCESSING_IN_PROGRESS", claim_id=claim) for claim in (ours, other)]
    assert [line.may_bring(each, ours) for each in claimed] == [False, True]


def test_tasks_of_one_name_share_one_limit() -> None:
    """BP-32. In two processes a task has one limit; another one beside it is refused, and both are told."""

    def limited(rate: float | None) -> Any:
        class Limited(A):  # type: ignore[misc,valid-type]
            pass

        return bot_task("a", effects=False, max_per_second=rate)(Limited)

    lines = admit_all([process(limited(5)), process(limited(5.0), B, name="second")])
    assert [line.limits for line in lines.values()] == [{"a": 5.0}, {"a": 5.0}]
    with pytest.raises(ProcessDeclarationError, match=r"'a' has max_per_second 5 in process 'processing' and 0[.]5 in"):
        admit_all([process(limited(5)), process(limited(0.5), name="second")])


def test_a_schedule_that_is_none_is_refused() -> None:
    """BP-30. A process declares a Schedule."""
    assert "schedule is 'daily'. Give a Schedule" in refusal(A, schedule="daily")
    assert admit(process(A, schedule=half_days())).process.schedule == half_days()
