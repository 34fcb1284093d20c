"""Random graphs, random outcomes: the local driver does what a scripted walk of the engine does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.unit.graph.random_graphs import admitted, graphs

from casework import ids
from casework.agents.model import ModelAnswer, ModelRequest
from casework.agents.toolbox import Toolbox
from casework.agents.tools import ToolContext, tool
from casework.errors import ManifestError, ToldError
from casework.graph import commands, engine, tracing
from casework.graph.bundle import PinnedWorkflow
from casework.graph.commands import AwaitDecision, Decided, Due, NodeFailed, Outcome, Result, Wait
from casework.graph.state import EngineState
from casework.graph.tracing import TraceStep
from casework.local.house import House
from casework.local.outside import Question
from casework.local.run import run_local
from casework.tasktree import current_node
from casework.trees.bundle import pinned_from_plain
from casework.values import dumps, loads

RUN = UUID(int=1)
TURNS = 1000
Key = tuple[UUID, str]


@dataclass
class Plan:
    """What each place of each run comes back with: drawn by the scripted walk, looked up by the local run."""

    draw: Callable[[Any], Any]
    made: dict[Key, Any] = field(default_factory=dict)

    def at(self, key: Key, strategy: st.SearchStrategy[Any]) -> Any:
        """Draw it, the first time."""
        if key not in self.made:
            self.made[key] = self.draw(st.just(FAILS) if self.draw(st.integers(0, 9)) == 7 else strategy)
        return self.made[key]


FAILS = "it broke"
NAMES = ("approve", "reject", "more_info")


@dataclass
class Scripted:
    """The third driver: the engine, and a plan."""

    plan: Plan
    pinned: PinnedWorkflow
    run_id: UUID
    trace: list[TraceStep] = field(default_factory=list)

    def walk(self, given: Mapping[str, Any]) -> tuple[EngineState, commands.Command]:
        """From input to end; the state goes through JSON between any two steps."""
        spec = self.pinned.workflow.spec
        state, command = engine.start(spec, given, turn_limit=TURNS)
        while not isinstance(command, (commands.Complete, commands.Fail)):
            outcome = self.outcome(state, command)
            self.trace += tracing.steps(command, outcome)
            state, command = engine.advance(spec, EngineState.from_plain(loads(dumps(state.to_plain()))), outcome)
        return state, command

    def outcome(self, state: EngineState, command: Due) -> Outcome:
        if isinstance(command, commands.Evaluate):
            return engine.evaluate(command, state)
        if isinstance(command, commands.RunBranches):
            made = [self.result(each.command, tracing.path_of(command, each)) for each in command.branches]
            return commands.Joined(tuple(made))
        return self.result(command, tracing.path_of(command))

    def result(self, command: commands.Work, path: str) -> Result:
        if isinstance(command, commands.RunSubworkflow):
            return self.sub(command.workflow, path)
        made = self.plan.at((self.run_id, path), VALUES[type(command)])
        if isinstance(command, Wait):
            return self.waited(command, made, path)
        if made == FAILS:
            return NodeFailed(
                f"{path}/exchange.1/model.1: {FAILS}" if isinstance(command, commands.RunAgent) else FAILS
            )
        if isinstance(command, commands.RunAgent):
            return commands.Answered(made)
        return made if isinstance(command, AwaitDecision) else commands.Returned(made)

    def waited(self, wait: Wait, made: Any, path: str) -> Result:
        if wait.signal is None:
            return commands.TimedOut()
        if made == FAILS:
            return commands.TimedOut() if wait.duration_s is not None else NodeFailed(FAILS)
        return commands.Signalled(made)

    def sub(self, name: str, path: str) -> Result:
        inner = pinned_from_plain(self.pinned.sub_bundle(name))
        assert isinstance(inner, PinnedWorkflow)
        _, end = Scripted(self.plan, inner, ids.sub_run_id(self.run_id, path)).walk({})
        if isinstance(end, commands.Fail):
            return NodeFailed(f"the run of {name} ended FAILED: {end.told}")
        assert isinstance(end, commands.Complete)
        return commands.Ended(end.outcome, end.output)


VALUES: dict[type, st.SearchStrategy[Any]] = {
    commands.RunAgent: st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=5),
    commands.RunTool: st.one_of(st.none(), st.integers(), st.lists(st.booleans(), max_size=2)),
    AwaitDecision: st.builds(Decided, st.sampled_from(NAMES), st.sampled_from(("because", "x")), st.just("ann")),
    Wait: st.one_of(st.none(), st.integers(), st.dictionaries(st.text("ab"), st.integers(), max_size=2)),
}


@dataclass
class Planned:
    """Models, tools, people and signals of the local driver that say what is planned for their place."""

    plan: Plan

    def said(self, run_id: UUID, path: str) -> Any:
        """What is planned; a place that the scripted walk did not come to is an error."""
        made = self.plan.made[(run_id, path)]
        if made == FAILS:
            raise ToldError(FAILS)
        return made

    def model(self, _request: ModelRequest) -> ModelAnswer:
        path = current_node().path.removesuffix("/exchange.1/model.1")
        return ModelAnswer(self.said(RUN, path))

    async def decide(self, question: Question) -> Decided:
        made: Decided = self.said(RUN, question.path)
        return made

    async def signal(self, wait: Wait, path: str) -> Any:
        if wait.duration_s is not None and self.plan.made[(RUN, path)] == FAILS:
            await asyncio.Event().wait()
        return self.said(RUN, path)

    def house(self) -> House:
        @tool(effects=False, name="t")
        async def planned(ctx: ToolContext) -> Any:
            """What is planned."""
            return self.said(ctx.run_id, ctx.path)

        return House(
            self, lambda *_: self.model, Toolbox([planned]), turn_limit=TURNS, sleep=lambda _: asyncio.sleep(0)
        )


@settings(max_examples=120, deadline=None)
@given(graph=graphs(), data=st.data())
def test_a_local_run_is_the_scripted_walk(graph: dict[str, Any], data: st.DataObject) -> None:
    """AW-9, AW-4. For the same outcomes the same trace, context and end; visits and branches have the planned paths."""
    try:
        pinned = admitted(graph)
    except ManifestError:
        assume(False)
    given_input = {"n": data.draw(st.integers(0, 6)), "l": data.draw(st.lists(st.integers(), max_size=4))}
    plan = Plan(data.draw)
    scripted = Scripted(plan, pinned, RUN)
    state, command = scripted.walk(given_input)
    end = asyncio.run(run_local(Planned(plan).house(), pinned, given_input, RUN))
    assert list(end.trace) == scripted.trace
    assert end.state == state
    if isinstance(command, commands.Complete):
        assert (end.status, end.outcome, end.output) == ("COMPLETED", command.outcome, command.output)
    else:
        assert isinstance(command, commands.Fail)
        assert (end.status, end.reason) == ("FAILED", command.told)
