"""Processes in memory, from the shipped ones to a project's own: the whole way of a Transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

import pytest
from tests.unit.process.lines import Ask, Join, Split, Underwrite, plain, process
from tests.unit.process.test_transactions import AT

from casework.errors import BusinessError, NotFoundError, ProcessDeclarationError
from casework.process import HAS_ERROR, ErrorType
from casework.process.declaring import bot_task
from casework.process.lines import LOOP_RULE, Line, Rule
from casework.process.local import LocalProject, LocalStore
from casework.process.monitor_clock import Stop
from casework.process.monitor_settings import MonitorConfig
from casework.process.monitors import InputMonitorTask, TransactionMonitorTask
from casework.process.policies import ErrorPolicy, OnError
from casework.process.shipped import ERRORS, INTAKE, PROCESSING, SHIPPED, SUBMISSION
from casework.process.tasks import Change, Decision, PlainTask, Question, RunEnd, TaskContext, TransactionalTask
from casework.process.transactions import Transaction

A, B, C = plain("a"), plain("b"), plain("c")
SECOND = timedelta(seconds=1)


class Mails(InputMonitorTask[str]):
    """Five mails, one of them broken, one of them twice."""

    box: ClassVar[list[str]] = ["one", "two", "three", "broken", "four", "five", "one"]

    async def query_input_entities(self) -> Sequence[str]:
        return self.box

    async def save_input_entity(self, entity: str) -> Mapping[str, Any]:
        if entity == "broken":
            raise BusinessError("this mail has no sender", code="NO_SENDER")
        return {"mail": entity}

    def natural_key(self, entity: str) -> str | None:
        return entity


MAIL_INTAKE = replace(INTAKE, monitor=Mails, tasks=(A,), tray_size=2)


async def test_the_happy_path_by_the_four_shipped_processes() -> None:
    """From nothing to COMPLETED, each step made by the named Monitor or Finalizer, as the log of stages tells."""

    class OneMail(Mails):
        box: ClassVar[list[str]] = ["one"]

    shipped = (replace(INTAKE, monitor=OneMail), PROCESSING, SUBMISSION, ERRORS)
    async with LocalProject(shipped) as project:
        await project.settle()
        assert [(step.before, step.after, step.process, step.by) for step in project.store.stages] == [
            (None, "INTAKE_IN_PROGRESS", "intake", "OneMail"),
            ("INTAKE_IN_PROGRESS", "INTAKE_COMPLETED", "intake", "finalizer"),
            ("INTAKE_COMPLETED", "PROCESSING_IN_PROGRESS", "processing", "ProcessingMonitor"),
            ("PROCESSING_IN_PROGRESS", "PROCESSING_COMPLETED", "processing", "finalizer"),
            ("PROCESSING_COMPLETED", "SUBMISSION_IN_PROGRESS", "submission", "SubmissionMonitor"),
            ("SUBMISSION_IN_PROGRESS", "COMPLETED", "submission", "finalizer"),
        ]
        (transaction,) = project.store.transactions.values()
        assert (transaction.claim_id, transaction.end_time is not None, transaction.straight_through) == (
            None,
            True,
            True,
        )


async def test_the_shipped_processes_hold_together_and_do_nothing_alone() -> None:
    """BP-6. Intake, Processing, Submission and Error Processing ship; nothing comes in until a Monitor is named."""
    async with LocalProject(SHIPPED) as project:
        assert await project.settle() == 0
        assert list(project.lines) == ["intake", "processing", "submission", "errors"]


async def test_a_round_emits_its_transactions_and_one_loop_record() -> None:
    """BP-12. 5 mails: five Transaction records and exactly one loop record in the trace, which goes to the Monitor."""
    async with LocalProject([MAIL_INTAKE]) as project:
        end = await project.run("intake", MonitorConfig(SECOND, SECOND, max_loops=2), polls=None)
        head = [record for record in project.store.trace if record.station == "monitor"]
        assert [(record.sys_repeat, record.to) for record in head] == [(False, "a")] * 5 + [(True, "monitor")]
        assert (end.rounds, end.claimed, end.stopped) == (2, 5, Stop.BY_LOOPS)


async def test_a_monitor_whose_loop_record_leads_elsewhere_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """BP-12. Without the Rule the process is refused at start; with the refusal taken away the Monitor runs once."""
    lonely = replace(MAIL_INTAKE, rules=())
    with pytest.raises(ProcessDeclarationError, match="would run once only"):
        LocalProject([lonely])
    async with LocalProject([MAIL_INTAKE]) as project:
        project.lines["intake"] = Line(lonely)
        end = await project.run("intake", MonitorConfig(SECOND, SECOND), polls=None)
        assert (end.rounds, end.claimed, end.stopped) == (1, 5, None)


async def test_one_bad_entity_does_not_stop_the_rest_and_one_that_came_before_is_no_second() -> None:
    """A bad entity becomes an error record; a key that came before makes no Transaction, now or at a later poll."""
    async with LocalProject([MAIL_INTAKE]) as project:
        await project.run("intake", polls=2)
        assert [each.natural_key for each in project.store.transactions.values()] == [
            "one",
            "two",
            "three",
            "four",
            "five",
        ]
        assert {(each.code, each.task) for each in project.store.errors} == {("NO_SENDER", "monitor")}


@bot_task("check")
class Check(TransactionalTask):
    """Fails as its Transaction says."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        kind = transaction.data.get("fails")
        if kind == "business":
            raise BusinessError("the amount is missing", code="NO_AMOUNT")
        if kind == "once" and ctx.attempt < 3:
            raise ConnectionError(f"attempt {ctx.attempt}")
        if kind == "always":
            raise ConnectionError("down")
        return Change(data={"checked": ctx.attempt})


async def work(*tasks: Any, data: Sequence[Mapping[str, Any]], **more: Any) -> LocalStore:
    """Each Transaction once through a processing process."""
    own = {key: more.pop(key) for key in ("errors", "agent", "reviewer") if key in more}
    async with LocalProject([process(*tasks, **{"tray_size": 10, **more})], **own) as project:
        for each in data:
            project.add("INTAKE_COMPLETED", each)
        await project.run("processing")
        return project.store


async def test_a_failure_is_one_transactions_own() -> None:
    """The error is recorded with all its fields and the status becomes HAS_ERROR; others of its tray go on."""
    store = await work(A, Check, B, data=[{}, {"fails": "business"}, {"fails": "always"}, {}])
    good, business, application, last = store.transactions.values()
    assert (good.status, last.status) == ("PROCESSING_COMPLETED", "PROCESSING_COMPLETED")
    assert (business.status, business.status_before_error) == (HAS_ERROR, "PROCESSING_IN_PROGRESS")
    first, second = store.errors
    assert (first.transaction, first.root, first.type, first.code) == (
        business.uuid,
        business.uuid,
        ErrorType.BUSINESS,
        "NO_AMOUNT",
    )
    assert (first.task, first.process, first.attempt, first.short) == ("check", "processing", 1, first.full)
    assert (second.transaction, second.type, second.code) == (
        application.uuid,
        ErrorType.APPLICATION,
        "ConnectionError",
    )
    assert business.data == {"fails": "business", "seen": ["a"]}
    assert (business.claim_id, application.claim_id) == (None, None)
    assert (business.process, business.task) == ("processing", "check")


async def test_what_failed_rides_to_the_end_untouched_while_the_error_process_works_on_it() -> None:
    """While the tray goes on, the Error process ends the failed one; the tray changes no field of it."""
    seen: list[Transaction] = []
    project: LocalProject

    @bot_task("meanwhile", effects=False)
    class Meanwhile(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            await project.run("errors")
            seen.extend(each for each in project.store.transactions.values() if each.status == "ABORTED")
            return None

    def abort(transaction: Transaction, question: Question) -> Decision:
        assert "NO_AMOUNT" in question.text
        return Decision("abort")

    processes = [process(Check, Meanwhile, C, tray_size=3), ERRORS]
    async with LocalProject(processes, reviewer=abort) as project:
        failed_one = project.add("INTAKE_COMPLETED", {"fails": "business"})
        good = project.add("INTAKE_COMPLETED")
        store = project.store
        await project.run("processing")
        assert store.transactions[good].status == "PROCESSING_COMPLETED"
        assert [each.uuid for each in seen] == [failed_one]
        assert store.transactions[failed_one] == seen[0]


async def test_application_errors_are_tried_again_first() -> None:
    """Retries of a policy: an APPLICATION error is tried again as often as it says, a BUSINESS error never."""
    again = ErrorPolicy(retries=2)
    store = await work(Check, data=[{"fails": "once"}, {"fails": "business"}, {"fails": "always"}], errors=again)
    assert store.statuses(store.transactions) == ["PROCESSING_COMPLETED", HAS_ERROR, HAS_ERROR]
    first = next(iter(store.transactions.values()))
    assert first.data["checked"] == 3
    assert [len(store.errors_of(each)) for each in store.transactions.values()] == [2, 1, 3]


async def test_fail_fast_and_log_and_forget() -> None:
    """One policy lets the whole tray fail with the first, the other records the error and goes on."""
    rows = [{}, {"fails": "business"}, {}]
    fast = await work(A, Check, data=rows, errors=ErrorPolicy(OnError.FAIL_FAST))
    assert fast.statuses(fast.transactions) == [HAS_ERROR] * 3
    assert "it leaves with Transaction" in fast.errors[-1].short
    forget = await work(Check, A, data=rows, errors=ErrorPolicy(OnError.LOG_AND_FORGET))
    assert forget.statuses(forget.transactions) == ["PROCESSING_COMPLETED"] * 3
    assert [each.code for each in forget.errors] == ["NO_AMOUNT"]
    assert [each.data.get("checked") for each in forget.transactions.values()] == [1, None, 1]


PARTS = {"parts": [1, 2, 3]}


async def test_children_are_split_off_and_joined() -> None:
    """Three children go through the tasks between; the join is made once, for the parent; all are finalized."""
    store = await work(Split, A, Join, B, data=[PARTS])
    parent, *children = store.transactions.values()
    assert parent.data["joined"] == [1, 2, 3]
    assert parent.data["seen"] == ["b"]
    assert [child.data["seen"] for child in children] == [["a", "b"]] * 3
    assert {child.parent_uuid for child in children} == {parent.uuid}
    assert set(store.statuses(store.transactions)) == {"PROCESSING_COMPLETED"}


@bot_task("check-part", errors=ErrorPolicy(siblings=True))
class CheckPart(TransactionalTask):
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        if transaction.data.get("part") == 2:
            raise BusinessError("part 2 is bad")
        return None


@bot_task("check-alone")
class CheckAlone(CheckPart):
    pass


async def test_a_failed_child_fails_its_parent_and_its_siblings_if_so_told() -> None:
    """The parent cannot be joined and says what is missing; siblings go on, unless the policy marks them too."""
    store = await work(Split, CheckPart, Join, data=[PARTS])
    assert store.statuses(store.transactions) == [HAS_ERROR] * 4
    store = await work(Split, CheckAlone, Join, data=[PARTS])
    parent = next(iter(store.transactions.values()))
    assert store.errors_of(parent)[0].code == "CHILDREN_MISSING"
    assert {each.root for each in store.errors} == {parent.uuid}


async def test_agents_and_people_work_in_a_line() -> None:
    """An agent task gives a run its input and takes its outcome; a manual task asks, and marks that a person did."""
    runs: list[tuple[str, UUID, Mapping[str, Any]]] = []

    async def agent(workflow: str, run_id: UUID, given: Mapping[str, Any]) -> RunEnd:
        runs.append((workflow, run_id, given))
        return RunEnd(run_id, "approved")

    store = await work(
        Underwrite, Ask, data=[{"amount": 5}], tray_size=1, agent=agent, reviewer=lambda _t, _q: Decision("yes")
    )
    (transaction,) = store.transactions.values()
    assert [(workflow, given) for workflow, _, given in runs] == [("loan-underwriting", {"amount": 5})]
    assert (transaction.data["outcome"], transaction.data["good"], transaction.straight_through) == (
        "approved",
        True,
        False,
    )


async def test_without_an_agent_or_a_reviewer_the_transaction_fails() -> None:
    """Nobody is made up: what nobody does is an error that says what to pass."""
    store = await work(Underwrite, data=[{"amount": 5}], tray_size=1)
    assert "Pass `agent`" in store.errors[0].short
    store = await work(Ask, data=[{}], tray_size=1)
    assert "Pass `reviewer`" in store.errors[0].short


async def test_an_illegal_status_and_a_broken_rule_are_the_transactions_errors() -> None:
    """An illegal status, or a Rule that cannot be evaluated, fails the Transaction, and the record says why."""

    @bot_task("jump")
    class Jump(TransactionalTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            return Change(status="COMPLETED")

    store = await work(Jump, data=[{}])
    assert "cannot go from status PROCESSING_IN_PROGRESS to COMPLETED" in store.errors[0].full
    store = await work(A, B, data=[{}], rules=(LOOP_RULE, Rule("a", "data.amount > 5", "finalizer")))
    assert (store.errors[0].code, store.statuses(store.transactions)) == ("ExpressionError", [HAS_ERROR])


async def test_at_the_end_a_transaction_stays_as_it_is() -> None:
    """BP-4. A task changes the status, legally; the Finalizer ignores it, and it stays in the store, unclaimed."""

    @bot_task("finish")
    class Finish(TransactionalTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            return Change(status="PROCESSING_COMPLETED", data={"by": "task"})

    store = await work(Finish, A, data=[{}])
    (transaction,) = store.transactions.values()
    assert (transaction.status, transaction.claim_id, transaction.data) == (
        "PROCESSING_COMPLETED",
        None,
        {"by": "task", "seen": ["a"]},
    )
    assert [step.by for step in store.stages] == ["add", "ProcessingMonitor", "finish"]


class Urgent(TransactionMonitorTask):
    status_to_monitor = "INTAKE_COMPLETED"
    status_to_set = "PROCESSING_IN_PROGRESS"


async def test_a_monitor_of_transactions_is_two_values() -> None:
    """BP-19. What to monitor and what to set is all that it needs; Processing, Submission and Error Monitors ship."""
    shipped = [PROCESSING.monitor, SUBMISSION.monitor, ERRORS.monitor]
    assert [(getattr(each, "status_to_monitor", None), each.status_to_set) for each in shipped] == [
        ("INTAKE_COMPLETED", "PROCESSING_IN_PROGRESS"),
        ("PROCESSING_COMPLETED", "SUBMISSION_IN_PROGRESS"),
        ("HAS_ERROR", "ERROR_IN_PROGRESS"),
    ]
    async with LocalProject([process(A, monitor=Urgent)]) as project:
        late, early, urgent = (
            project.add("INTAKE_COMPLETED", **more) for more in ({}, {"due_time": AT}, {"priority": 1})
        )
        elsewhere = project.add("PROCESSING_COMPLETED")
        assert (await project.run("processing")).claimed == 3
        claimed = [step.transaction for step in project.store.stages if step.by == "Urgent"]
        assert claimed == [urgent, early, late]
        assert project.store.transactions[elsewhere].data == {}


async def test_an_unknown_process_is_named() -> None:
    """A process that is not there is told with those that are."""
    async with LocalProject(SHIPPED) as project:
        with pytest.raises(NotFoundError, match=r"'procesing'.*Did you mean 'processing'"):
            await project.run("procesing")
