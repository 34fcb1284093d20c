"""Processes whose Transactions wait for a run of a workflow or for a person; and the Error process of their errors."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from casework.agents import tool
from casework.app import App
from casework.errors import BusinessError, ToldError
from casework.graph.loading import load
from casework.process import (
    ERRORS,
    LOOP_RULE,
    PROCESSING,
    AgentTask,
    Answer,
    BusinessProcess,
    Change,
    Decision,
    ErrorEntity,
    ErrorPolicy,
    JoinTask,
    ManualTask,
    Question,
    RunEnd,
    SplitTask,
    TaskContext,
    Transaction,
    bot_task,
)
from casework.process.shipped import AskAboutError

MANIFESTS = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: assess}
spec:
  initialNode: double
  input: {type: object, required: [n], properties: {n: {type: integer}}}
  nodes:
    - {id: double, type: TOOL, tool: double, arguments: {n: "{{ input.n }}"}, outputKey: twice}
    - {id: big, type: CONDITION, expression: "twice >= 100"}
    - {id: hold, type: WAIT, signal: go}
  edges:
    - {from: double, to: big}
    - {from: big, to: hold, condition: "true"}
    - {from: big, to: end, condition: "false"}
"""
CALLS: Counter[str] = Counter()
"""How often what was called, of a Task."""


@tool(effects=False, name="double")
async def double(n: int) -> int:
    """Twice as much; nothing that is below nothing. The run is held from 50."""
    if n < 0:
        raise ToldError(f"{n} is below nothing")
    return 2 * n


@bot_task("assess")
class Assess(AgentTask):
    """Lets the workflow double a number."""

    workflow: ClassVar[str] = "assess"

    async def input(self, transaction: Transaction) -> Mapping[str, Any]:
        CALLS["input"] += 1
        return {"n": transaction.data["n"]}

    async def outcome(self, transaction: Transaction, end: RunEnd) -> Change | None:
        CALLS["outcome"] += 1
        if end.output == 26:
            raise BusinessError("26 brings bad luck", code="BAD_LUCK")
        return Change(data={"twice": end.output, "run": str(end.run_id)})


@bot_task("ask", timeout=0.5)
class Ask(ManualTask):
    """Asks whether to pay."""

    async def question(self, transaction: Transaction, errors: Sequence[ErrorEntity]) -> Question:
        CALLS["question"] += 1
        assert not errors
        if transaction.data["n"] == 7:
            raise BusinessError("nobody can be asked about 7", code="SEVEN")
        if transaction.data["n"] == 8:
            await asyncio.Event().wait()
        return Question(f"Pay {transaction.data['n']}?", ("yes", "no"))

    async def decided(self, transaction: Transaction, decision: Decision) -> Change | None:
        CALLS["decided"] += 1
        if decision.decision == "no":
            raise BusinessError(f"not to be paid: {decision.reason}", code="REFUSED")
        return Change(data={"paid": [decision.decision, decision.reason, decision.reviewer]})


@bot_task("part")
class Part(SplitTask):
    """A child for each number."""

    async def split(self, transaction: Transaction, ctx: TaskContext) -> Sequence[Mapping[str, Any]]:
        return [{"n": number} for number in transaction.data["numbers"]]


@bot_task("gather")
class Gather(JoinTask):
    """What the people said of each."""

    async def join(self, parent: Transaction, children: Sequence[Transaction], ctx: TaskContext) -> Change | None:
        return Change(data={"said": [child.data["paid"][1] for child in children]})


@bot_task("ask-all")
class AskAll(AskAboutError):
    """Offers every answer that the policy has on."""

    answers: ClassVar[tuple[Answer, ...]] = tuple(Answer)


BY_AGENT = replace(PROCESSING, tasks=(Assess,))
BY_PERSON = replace(PROCESSING, tasks=(Ask,))
BOTH = replace(PROCESSING, tasks=(Assess, Ask))
PARTED = replace(PROCESSING, tasks=(Part, Assess, Ask, Gather))
ASK_ALL = BusinessProcess(
    name="errors", monitor=ERRORS.monitor, tasks=(AskAll,), rules=(LOOP_RULE,), finalizer=ERRORS.finalizer
)


def app(
    *processes: BusinessProcess, errors: ErrorPolicy | None = None, entities: Sequence[str] = (), **given: Any
) -> App:
    """An application of these processes."""
    return App([double], load(MANIFESTS), processes=processes, errors=errors, entities=entities, **given)


both = app(BOTH)
"""What workers of their own load."""
