"""Random graphs, random outcomes: a durable run does what a scripted walk of the engine does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st
from temporalio import activity

from casework.agents.model import ModelAnswer, ModelRequest
from casework.agents.tools import ToolContext, tool
from casework.app import App
from casework.durable import contracts
from casework.durable.contracts import Decision, Signal
from casework.errors import FatalError, ManifestError, ToldError
from casework.graph import commands
from casework.graph.admission import admit
from casework.graph.bundle import PinnedWorkflow
from casework.graph.commands import AwaitDecision, Wait
from casework.graph.manifests import AiWorkflow, LlmProvider
from casework.graph.state import EngineState
from casework.store import reviews, runs, workflows
from casework.store.rows import RunRow
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.unit.graph.random_graphs import AGENT, HEAD, SUB, graphs
from tests.unit.local.test_drivers_agree import FAILS, TURNS, VALUES, Plan, Scripted

PROVIDER = LlmProvider.model_validate(
    {**HEAD, "metadata": {"name": "p"}, "spec": {"type": "scripted", "script": "planned"}}
)
CASES = 5
SIGNAL = "sent"
"""What every signal brings: which of several waits of one name takes which is nobody's to say."""


@dataclass
class Case:
    """A graph, what it is given, and what the scripted walk made of it."""

    pinned: PinnedWorkflow
    given: dict[str, Any]
    run_id: UUID
    plan: Plan
    trace: list[list[str]]
    state: EngineState
    end: commands.Command


class Possible(Plan):
    """People and signals do not fail in a durable run; they come, or do not."""

    def at(self, key: tuple[UUID, str], strategy: st.SearchStrategy[Any]) -> Any:
        if strategy is VALUES[Wait]:
            return self.made.setdefault(key, SIGNAL)
        if strategy is VALUES[AwaitDecision] and key not in self.made:
            self.made[key] = self.draw(strategy)
        return super().at(key, strategy)


def planned(number: int) -> list[Case]:
    """Some cases, the same for the same number."""
    made: list[Case] = []

    @seed(number)
    @settings(
        max_examples=60,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(graph=graphs(), data=st.data())
    def collect(graph: dict[str, Any], data: st.DataObject) -> None:
        quick(graph)
        try:
            workflow = AiWorkflow.model_validate({**HEAD, "metadata": {"name": "w"}, "spec": graph})
            pinned = admit([workflow, SUB, AGENT, PROVIDER], ["t"])[0]
        except ManifestError:
            assume(False)
        asked = {"n": data.draw(st.integers(0, 6)), "l": data.draw(st.lists(st.integers(), max_size=4))}
        plan, run_id = Possible(data.draw), uuid4()
        scripted = Scripted(plan, pinned, run_id)
        state, end = scripted.walk(asked)
        made.append(Case(pinned, asked, run_id, plan, [list(step) for step in scripted.trace], state, end))

    collect()
    fans = [case for case in made if any("/" in step[0] for step in case.trace)]
    return sorted(fans, key=lambda case: -len({step[1] for step in case.trace}))[:CASES]


def quick(graph: dict[str, Any]) -> None:
    """Waits for a time alone are short."""
    for node in graph["nodes"]:
        for vertex in (node, *node.get("branches", ())):
            if vertex.get("duration") == 1:
                vertex["duration"] = 0.05


def house_app(cases: list[Case]) -> App:
    """Models and tools that say what is planned for their place."""
    said = {key: value for case in cases for key, value in case.plan.made.items()}

    def script(_request: ModelRequest) -> ModelAnswer:
        info = activity.info()
        made = said[UUID(info.workflow_id), info.activity_id.removesuffix("/exchange.1/model.1")]
        if made == FAILS:
            raise FatalError(FAILS)
        return ModelAnswer(made)

    @tool(effects=False, name="t")
    async def planned_tool(ctx: ToolContext) -> Any:
        """What is planned."""
        made = said[ctx.run_id, ctx.path]
        if made == FAILS:
            raise ToldError(FAILS)
        return made

    return App(tools=[planned_tool], scripts={"planned": script})


@pytest.mark.parametrize("number", [1, 2])
async def test_a_durable_run_is_the_scripted_walk(house: House, number: int) -> None:
    """AW-9, AW-4. For the same outcomes the same trace, outputs and end, durable or not."""
    cases = planned(number)
    assert len(cases) == CASES
    async with house.with_app(house_app(cases)) as busy:
        for case in cases:
            await started(busy, case)
        for case in cases:
            row = await eventually(partial(ended, busy, case), f"{case.run_id} has ended", 60)
            await compare(busy, case, row)


async def started(house: House, case: Case) -> None:
    """A run of the case, with as many signals as it may take."""
    async with house.db.transaction() as conn:
        for name, plain in sorted(case.pinned.workflows.items()):
            inner = case.pinned.sub_bundle(name)
            assert inner == dict(plain)
        await workflows.publish(conn, TENANT, "w", case.pinned.to_plain(), case.pinned.hash())
    await house.start(case.given, "w", run_id=case.run_id, turn_limit=TURNS)
    for at in range(sum(step[2] == "Signalled" for step in case.trace)):
        await house.runs.signal(str(case.run_id), Signal("go", f"s{at}", "ann", SIGNAL))


async def ended(house: House, case: Case) -> RunRow | None:
    """Its row, once it has ended; on the way what is asked is answered as planned."""
    async with house.db.transaction() as conn:
        row = await runs.get(conn, TENANT, case.run_id)
        asked = await reviews.of_run(conn, TENANT, case.run_id)
    for review in asked:
        if review.status == "pending":
            made = case.plan.made[case.run_id, review.path]
            answer = Decision(str(review.review_id), str(review.review_id), made.decision, made.reason, made.reviewer)
            await house.runs.decide_and_confirm(str(case.run_id), answer, 20)
    return row if row is not None and row.ended_at is not None else None


async def compare(house: House, case: Case, row: RunRow) -> None:
    handle = house.client.get_workflow_handle(str(case.run_id))
    assert await handle.query(contracts.TRACE_QUERY) == case.trace
    if isinstance(case.end, commands.Complete):
        assert (row.status, row.outcome) == ("COMPLETED", case.end.outcome)
    else:
        assert isinstance(case.end, commands.Fail)
        assert (row.status, row.failure) == ("FAILED", case.end.told)
    async with house.db.transaction() as conn:
        found = {each.key: each.value for each in await runs.context(conn, TENANT, case.run_id)}
    reserved = ("input", "review", "errors")
    assert found == {key: value for key, value in case.state.context.items() if key not in reserved}
