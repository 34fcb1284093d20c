"""Over random lines, trays and faults: what a driver in memory does with the walk keeps its promises."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.process.lines import process

from casework.errors import BusinessError
from casework.process import HAS_ERROR
from casework.process.declaring import bot_task
from casework.process.lines import LOOP_RULE, Rule
from casework.process.local import LocalProject
from casework.process.policies import ErrorPolicy
from casework.process.tasks import Change, PlainTask, TaskContext
from casework.process.transactions import Transaction

Fault = tuple[str, str]
"""The task at which a Transaction fails, and how: `business`, `once`, or `always`."""


def counted(name: str, calls: Counter[tuple[UUID, str]]) -> type[PlainTask]:
    """A task that counts its calls, and fails those Transactions that say so."""

    @bot_task(name, effects=False)
    class Counted(PlainTask):
        async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
            calls[transaction.uuid, name] += 1
            if transaction.data.get("at") == name:
                how = transaction.data["how"]
                if how == "business":
                    raise BusinessError("bad")
                if how == "always" or ctx.attempt == 1:
                    raise ConnectionError("down")
            return Change(data={"seen": [*transaction.data["seen"], name]})

    return Counted


NAMES = st.lists(st.sampled_from("abcdef"), unique=True, min_size=1, max_size=5)
FAULTS = st.lists(st.none() | st.tuples(st.sampled_from("abcdef"), st.sampled_from(["business", "once", "always"])))


@given(NAMES, FAULTS, st.integers(1, 5), st.integers(0, 2), st.data())
@settings(max_examples=60, deadline=None)
async def test_each_transaction_goes_once_through_each_task_of_its_way(
    names: list[str], faults: list[Fault | None], tray_size: int, retries: int, data: st.DataObject
) -> None:
    """Whatever the tray size, the Rules and the faults of others: each Transaction passes the tasks of its way once, in
    order; one that fails is HAS_ERROR, has a record for each attempt, and is seen by no task behind; none is lost."""
    calls: Counter[tuple[UUID, str]] = Counter()
    skipped = data.draw(st.sampled_from([None, *names]))
    rules = [LOOP_RULE]
    if skipped is not None and skipped != names[0]:
        before = names[names.index(skipped) - 1]
        behind = [*names, "finalizer"][names.index(skipped) + 1]
        rules.append(Rule(before, "data.short", behind))
    tasks = [counted(name, calls) for name in names]
    made = process(*tasks, tray_size=tray_size, rules=tuple(rules))
    async with LocalProject([made], errors=ErrorPolicy(retries=retries)) as project:
        rows: list[dict[str, Any]] = []
        for fault in faults:
            at, how = fault or ("", "")
            rows.append({"seen": [], "short": data.draw(st.booleans()), "at": at, "how": how})
            project.add("INTAKE_COMPLETED", rows[-1])
        await project.run("processing")
        for row, transaction in zip(rows, project.store.transactions.values(), strict=True):
            way = [name for name in names if not (row["short"] and len(rules) > 1 and name == skipped)]
            tries = {"business": 1, "once": 1 + (retries > 0), "always": 1 + retries}.get(row["how"], 1)
            fails = row["at"] in way and (row["how"] != "once" or retries == 0)
            passed = way[: way.index(row["at"])] if fails else way
            assert transaction.data["seen"] == passed
            assert transaction.status == (HAS_ERROR if fails else "PROCESSING_COMPLETED")
            assert transaction.claim_id is None
            expected = dict.fromkeys(passed, 1) | ({row["at"]: tries} if row["at"] in way else {})
            assert {name: count for (uuid, name), count in calls.items() if uuid == transaction.uuid} == expected
            records = len(project.store.errors_of(transaction))
            assert records == (tries if fails else tries - 1 if row["at"] in way else 0)
