"""In memory as on the engine: limits for each business key, parents that wait for other trays, clones of children."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.unit.process.lines import Join, Split, plain, process

from casework.errors import BusinessError, ProcessDeclarationError
from casework.process import ABORTED, ERRORS, HAS_ERROR, INTAKE, Answer, BusinessProcess, ErrorEntity, Finalizer, Remedy
from casework.process.admission import admit
from casework.process.declaring import bot_task
from casework.process.lines import LOOP_RULE, Rule
from casework.process.local import LocalProject
from casework.process.monitors import InputMonitorTask, TransactionMonitorTask
from casework.process.tasks import Change, ErrorTask, PlainTask, TaskContext
from casework.process.transactions import Transaction
from casework.process.working import MOST_CHILDREN

DONE, OUT = "PROCESSING_COMPLETED", "COMPLETED"


class Late(TransactionMonitorTask):
    status_to_monitor, status_to_set = DONE, "SUBMISSION_IN_PROGRESS"


CUT = process(Split, name="cut", finalizer=Finalizer("PROCESSING_IN_PROGRESS", DONE), tray_size=4)
PUT = BusinessProcess(
    name="put", monitor=Late, tasks=(Join,), finalizer=Finalizer("SUBMISSION_IN_PROGRESS", OUT), max_trays=1
)


async def test_no_more_of_one_business_key_are_in_trays_than_may() -> None:
    """BP-32. What is over the limit waits for a later poll; what has no key is not limited."""
    limited = process(plain("a"), tray_size=10, max_per_key=2)
    async with LocalProject([limited]) as project:
        for _ in range(3):
            project.add("INTAKE_COMPLETED", business_key="ACME")
        project.add("INTAKE_COMPLETED", business_key="other")
        project.add("INTAKE_COMPLETED")
        claimed = [(await project.run("processing")).claimed for _ in range(3)]
    assert claimed == [4, 1, 0]


async def test_a_limit_for_each_key_holds_over_the_trays_of_one_poll() -> None:
    """BP-32. Trays of one are claimed together, and walked behind the poll."""
    limited = process(plain("a"), tray_size=1, max_per_key=2)
    async with LocalProject([limited]) as project:
        for _ in range(5):
            project.add("INTAKE_COMPLETED", business_key="ACME")
        claimed = [(await project.run("processing")).claimed for _ in range(4)]
    assert claimed == [2, 2, 1, 0]


def test_a_limit_for_each_key_is_refused_where_work_is_taken_in() -> None:
    """BP-32. An input Monitor takes what comes: the limit would hold nothing."""
    with pytest.raises(ProcessDeclarationError, match="max_per_key is 2, and Monitor NothingComes takes in what comes"):
        admit(replace(INTAKE, max_per_key=2))


async def test_a_parent_waits_at_its_join_for_children_in_other_trays() -> None:
    """BP-8. Claimed first and alone, it waits until the last child has come; the join is made once, in order."""
    async with LocalProject([CUT, PUT]) as project:
        parent = project.add("INTAKE_COMPLETED", {"parts": ["x", "y", "z"]}, priority=1)
        await project.run("cut")
        seen = []
        for _ in range(4):
            await project.run("put")
            seen.append(project.store.transactions[parent].status)
        assert seen == ["SUBMISSION_IN_PROGRESS"] * 3 + [OUT]
        assert project.store.transactions[parent].data["joined"] == ["x", "y", "z"]
        assert project.store.errors == []


async def test_a_parent_waits_no_longer_than_its_join_says() -> None:
    """BP-8. It fails with those that are missing; the clock is that of the project."""

    @bot_task("join")
    class Hasty(Join):
        longest_wait = timedelta(minutes=1)

    async with LocalProject([CUT, replace(PUT, tasks=(Hasty,))]) as project:
        parent = project.add("INTAKE_COMPLETED", {"parts": ["x", "y", "z"]}, priority=1)
        await project.run("cut")
        await project.run("put")
        assert project.store.transactions[parent].status == "SUBMISSION_IN_PROGRESS"
        project.clock += timedelta(minutes=1)
        await project.run("put")
        (error,) = project.store.errors_of(project.store.transactions[parent])
        assert error.full.startswith("BusinessError: 3 of 3 children have not come to the join join.1")


async def test_a_split_into_too_many_is_refused() -> None:
    """BP-8. The error names the task, the number and the limit; no child is there."""
    async with LocalProject([CUT]) as project:
        most, more = (
            project.add("INTAKE_COMPLETED", {"parts": list(range(MOST_CHILDREN + extra))}) for extra in (0, 1)
        )
        await project.settle()
        store = project.store
        assert store.statuses([most, more]) == [DONE, HAS_ERROR]
        (error,) = store.errors
        assert "Task 'split' gave 1,001 children; one Transaction is split into 1,000 at most" in error.full
        assert not [each for each in store.transactions.values() if each.parent_uuid == more]


@pytest.mark.parametrize("limit", [timedelta(0), 60, "PT1M"])
def test_a_longest_wait_that_is_none_is_refused(limit: Any) -> None:
    """The value and what to give."""
    with pytest.raises(ProcessDeclarationError, match=r"longest_wait is .*Give a timedelta above 0"):
        bot_task("hasty")(type("Hasty", (Join,), {"longest_wait": limit}))


async def test_all_comes_to_rest_with_parents_that_wait() -> None:
    """BP-8. `settle` goes on as long as a tray that waits goes on."""
    async with LocalProject([CUT, PUT]) as project:
        parents = [project.add("INTAKE_COMPLETED", {"parts": [n, n]}, priority=1) for n in range(3)]
        await project.settle()
        assert set(project.store.statuses(project.store.transactions)) == {OUT}
        assert [project.store.transactions[each].data["joined"] for each in parents] == [[n, n] for n in range(3)]


@bot_task("weigh", effects=False)
class Weigh(PlainTask):
    """Refuses the part "bad"."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        if transaction.data.get("part") == "bad":
            raise BusinessError("the part is bad")
        return None


@bot_task("mend")
class Mend(ErrorTask):
    """Puts a good child in the place of a bad one."""

    async def handle(self, transaction: Transaction, errors: Sequence[ErrorEntity], ctx: TaskContext) -> Remedy:
        return Remedy(Answer.CLONE, into=DONE, data={"part": "mended"})


async def test_the_clone_of_a_child_counts_in_its_place() -> None:
    """BP-8, BP-25. The parent at the join waits for the clone, and no more for the child that was aborted."""
    cut = replace(CUT, tasks=(Split, Weigh))
    mending = BusinessProcess(name="errors", monitor=ERRORS.monitor, tasks=(Mend,), finalizer=ERRORS.finalizer)
    async with LocalProject([cut, mending, PUT]) as project:
        parent = project.add("INTAKE_COMPLETED", {"parts": ["good", "bad"]}, priority=1)
        await project.settle()
        found: Mapping[UUID, Transaction] = project.store.transactions
        assert (found[parent].status, found[parent].data["joined"]) == (OUT, ["good", "mended"])
        assert sorted(each.status for each in found.values()) == [ABORTED, OUT, OUT, OUT]


class Failing(InputMonitorTask[str]):
    """Gives the same bad entity at each poll."""

    async def query_input_entities(self) -> Sequence[str]:
        return ["bad"]

    async def save_input_entity(self, entity: str) -> Mapping[str, Any]:
        raise BusinessError("nothing in it", code="EMPTY")

    def natural_key(self, entity: str) -> str | None:
        return entity


async def test_an_entity_that_fails_at_each_poll_is_recorded_once() -> None:
    """BP-20. The record is the last one's."""
    async with LocalProject([replace(INTAKE, monitor=Failing)]) as project:
        for _ in range(3):
            await project.run("intake")
        assert [each.code for each in project.store.errors] == ["EMPTY"]


async def test_one_that_the_rules_behind_the_monitor_cannot_place_is_refused_alone() -> None:
    """BP-6, BP-10. A Rule that cannot be evaluated over one Transaction is its error; the others go on."""
    rules = (LOOP_RULE, Rule("monitor", "!_sys_repeat && data.amount > 5", "b"))
    async with LocalProject([process(plain("a"), plain("b"), rules=rules, tray_size=9)]) as project:
        high, none, low = (project.add("INTAKE_COMPLETED", data) for data in ({"amount": 6}, {}, {"amount": 5}))
        await project.run("processing")
        store = project.store
        assert store.statuses([high, none, low]) == [DONE, HAS_ERROR, DONE]
        assert [store.transactions[each].data.get("seen") for each in (high, none, low)] == [["b"], None, ["a", "b"]]
        (error,) = store.errors
        assert "data.amount > 5" in error.full
