"""Random graphs of quick and other nodes, random trouble: in memory, by segments, node by node it is one run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from casework.agents.toolbox import Toolbox
from casework.agents.tools import Tool, ToolContext, tool
from casework.app import App
from casework.durable import contracts
from casework.errors import FatalError, ManifestError, RetryableError, ToldError
from casework.graph import segments
from casework.graph.admission import admit
from casework.graph.bundle import PinnedWorkflow
from casework.graph.commands import Decided, Wait
from casework.graph.manifests import AiWorkflow
from casework.local.house import House as LocalHouse
from casework.local.house import LocalEnd
from casework.local.outside import Question
from casework.local.run import run_local
from casework.store import workflows
from casework.store.rows import RunRow
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.test_segments import activities, seen
from tests.unit.graph.random_graphs import HEAD, graphs

CASES = 8
KINDS = ("TOOL", "TOOL", "TOOL", "TOOL", "TOOL", "CONDITION", "PARALLEL", "MAP")
TOOLS = ("reads", "reads", "counts", "sets", "books", "sends")
"""`sends` is not quick."""
ARGUMENTS: tuple[dict[str, str], ...] = ({}, {}, {"of": "{{ input.n }}"}, {"of": "{{ n0_out }}"})
TROUBLE: tuple[int, ...] = (0,) * 16 + (1, 2, 3)
"""How often a tool fails before it gives its result; three is too often."""
RESULTS: tuple[Any, ...] = (None, 3, "word", [True], {"a": {"b": 1}}, 7, "x", ToldError("not today"))
FAULT = FatalError("it is over")


@dataclass(frozen=True)
class Case:
    """A graph, what it is given, what its tools do by `number`, and how it ends in memory."""

    pinned: PinnedWorkflow
    given: dict[str, Any]
    number: int
    end: LocalEnd


def act(number: int, path: str, calls: int) -> Any:
    """What the tool at `path` does when it is called for the `calls`th time: the same in every run of a case."""
    chance = Random(f"{number} {path}")
    trouble, made = chance.choice(TROUBLE), chance.choice(RESULTS)
    if chance.random() < 0.02:
        raise FAULT
    if calls <= trouble:
        raise RetryableError("busy")
    if isinstance(made, ToldError):
        raise made
    return made


class Planned:
    """Tools that do what is planned for the runs in `numbers`; `patient` ones are called until they give a result."""

    def __init__(self, numbers: Mapping[UUID, int], *, patient: bool) -> None:
        self._numbers = numbers
        self._patient = patient
        self.calls: Counter[tuple[UUID, str]] = Counter()

    def _made(self, ctx: ToolContext) -> Any:
        key = ctx.run_id, ctx.path
        self.calls[key] += 1
        return act(self._numbers[ctx.run_id], ctx.path, 3 if self._patient else self.calls[key])

    def tools(self) -> list[Tool]:
        """One of each kind. In memory there is no transaction to write in: there `books` is as the others."""

        @tool(effects=False)
        async def reads(ctx: ToolContext, of: Any = None) -> Any:
            """Read."""
            return self._made(ctx)

        @tool(effects=False, inline=True)
        def counts(ctx: ToolContext, of: Any = None) -> Any:
            """Count."""
            return self._made(ctx)

        @tool(repeat="idempotent")
        def sets(ctx: ToolContext, of: Any = None) -> Any:
            """Set."""
            return self._made(ctx)

        @tool(repeat="idempotent" if self._patient else "transactional")
        async def books(ctx: ToolContext, of: Any = None) -> Any:
            """Book."""
            return self._made(ctx)

        @tool(repeat="keyed")
        def sends(ctx: ToolContext, of: Any = None) -> Any:
            """Send."""
            return self._made(ctx)

        return [reads, counts, sets, books, sends]


def cases(number: int) -> list[Case]:
    """Some, the same for the same number: those in which most of chains is walked."""
    made: list[Case] = []

    @seed(number)
    @settings(
        max_examples=150, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(graph=graphs(KINDS, 7), data=st.data())
    def collect(graph: dict[str, Any], data: st.DataObject) -> None:
        graph["maxLoops"] = data.draw(st.integers(8, 20))
        for node in graph["nodes"]:
            node.update(
                {"branches": [tooled(data, each["id"]) for each in node["branches"]]} if "branches" in node else {}
            )
            node.update(tooled(data, node["id"]) if node["type"] == "TOOL" else {})
        run_id, asked = (
            uuid4(),
            {"n": data.draw(st.integers(0, 6)), "l": data.draw(st.lists(st.integers(), max_size=3))},
        )
        planned = Planned({run_id: len(made)}, patient=True).tools()
        try:
            workflow = AiWorkflow.model_validate({**HEAD, "metadata": {"name": "w"}, "spec": graph})
            pinned = admit([workflow], [each.name for each in planned], quick=set(TOOLS) - {"sends"})[0]
        except ManifestError:
            assume(False)
        local = LocalHouse(Nobody(), lambda *_: Nobody().model, Toolbox(planned))
        made.append(Case(pinned, asked, len(made), asyncio.run(run_local(local, pinned, asked, run_id))))

    collect()
    return sorted(made, key=walked)[-CASES:]


class Nobody:
    """Neither agents nor people."""

    async def decide(self, _question: Question) -> Decided:
        raise AssertionError

    async def signal(self, _wait: Wait, _path: str) -> Any:
        raise AssertionError

    def model(self, *_: Any) -> Any:
        raise AssertionError


def tooled(data: st.DataObject, name: str) -> dict[str, Any]:
    chosen = data.draw(st.sampled_from(TOOLS))
    return {"id": name, "type": "TOOL", "tool": chosen, "arguments": data.draw(st.sampled_from(ARGUMENTS))}


def walked(case: Case) -> int:
    """How much of chains was visited: above all, of how many nodes."""
    chained = segments.chained(case.pinned.workflow.spec, case.pinned.quick)
    visits = [name for name in (step[0].rpartition(".")[0] for step in case.end.trace) if name in chained]
    return 3 * len(set(visits)) + len(visits)


@pytest.mark.parametrize("number", [1, 2])
async def test_a_graph_is_one_graph_however_it_is_walked(house: House, number: int) -> None:
    """AW-11, AW-9, AW-4. Same trace, outputs and end in memory; rows, events and attempts too, with segments or not."""
    found = await asyncio.to_thread(cases, number)
    numbers: dict[UUID, int] = {}
    planned = Planned(numbers, patient=False)
    async with house.with_app(App(tools=planned.tools())) as busy:
        ids = {
            each.number: (await begun(busy, each, numbers), await begun(busy, plain(each), numbers)) for each in found
        }
        for case in found:
            both = [await eventually(partial(ended, busy, each), f"{each} has ended", 60) for each in ids[case.number]]
            quick, alone = [await told(busy, each) for each in both]
            assert quick == alone
            assert calls_of(planned, both[0]) == calls_of(planned, both[1])
            compare(case, both[0], quick)
        kinds = [kind for quick, _ in ids.values() for kind in await activities(busy, quick)]
        assert kinds.count(contracts.RUN_SEGMENT) >= CASES


def plain(case: Case) -> Case:
    return replace(case, pinned=replace(case.pinned, quick=()))


async def begun(house: House, case: Case, numbers: dict[UUID, int]) -> UUID:
    async with house.db.transaction() as conn:
        await workflows.publish(conn, TENANT, "w", case.pinned.to_plain(), case.pinned.hash())
    run_id = uuid4()
    numbers[run_id] = case.number
    return await house.start(case.given, "w", run_id=run_id)


async def ended(house: House, run_id: UUID) -> RunRow | None:
    row = await house.run(run_id)
    return row if row.ended_at is not None else None


async def told(house: House, row: RunRow) -> dict[str, Any]:
    """All that is seen. Branches are under way side by side, so only what is told of each path has an order."""
    made = await seen(house, row.run_id)
    return {**made, "events": sorted(made["events"], key=lambda each: each[0])}


def calls_of(planned: Planned, row: RunRow) -> Counter[str]:
    return Counter({path: count for (run, path), count in planned.calls.items() if run == row.run_id})


def compare(case: Case, row: RunRow, found: Mapping[str, Any]) -> None:
    """With the end in memory."""
    end = case.end
    assert found["trace"] == [list(step) for step in end.trace]
    assert (row.status, row.outcome, row.failure) == (end.status, end.outcome, end.reason)
    assert end.state is not None
    kept = {key: str(value) for key, value in end.state.context.items() if key not in ("input", "review", "errors")}
    assert {key: value for key, _, _, value in found["context"]} == kept
