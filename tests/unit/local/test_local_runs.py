"""Runs in memory: every node type, and what a run ends with."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from tests.unit.local.conftest import Answers, double, house, pinned, said, says, workflow

from casework.agents.messages import Request
from casework.agents.model import ModelAnswer, ModelRequest
from casework.agents.toolbox import Toolbox
from casework.agents.tools import Tool, ToolContext, tool
from casework.app import App
from casework.errors import FatalError, InputError, RetryableError
from casework.local.outside import NobodyError
from casework.local.run import run_local
from casework.trees import TreeContext, free_tree
from casework.values import dumps

AGENT = {"id": "a", "type": "AGENT", "agentRef": "clerk", "outputKey": "answer"}
TOOL = {"id": "t", "type": "TOOL", "tool": "double", "arguments": {"n": "{{ input.n }}"}, "outputKey": "twice"}
CASE = {
    "id": "ask",
    "type": "HUMAN_APPROVAL",
    "decisions": [{"name": "approve", "outcome": "approved"}, {"name": "more_info"}],
}


def branch(node: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**{key: value for key, value in node.items() if key != "outputKey"}, **more}


async def test_a_graph_is_walked_with_the_paths_of_a_durable_run() -> None:
    """AW-9. Agent, tool, person; visits are Jobs, exchanges, models and tools handlers below them."""

    def clerk(request: ModelRequest) -> ModelAnswer:
        if request.messages[-1].role == "user":
            return ModelAnswer("", (Request("c1", "double", {"n": 4}),))
        return ModelAnswer(f"it is {request.messages[-1].content}")

    made = pinned(
        workflow(
            "w",
            [{**AGENT, "inputTemplate": "n is {{ input.n }}"}, CASE],
            [
                {"from": "a", "to": "ask"},
                {"from": "ask", "to": "end", "condition": "approve"},
                {"from": "ask", "to": "a", "condition": "more_info"},
            ],
        )
    )
    answers = Answers({"ask": [said("more_info", "Check it."), said("approve")]})
    end = await run_local(house(clerk, answers), made, {"n": 4})
    assert (end.status, end.outcome, end.output) == ("COMPLETED", "approved", "it is 8")
    assert [step[:] for step in end.trace] == [
        ("a.1", "RunAgent", "Answered"),
        ("ask.1", "AwaitDecision", "Decided"),
        ("a.2", "RunAgent", "Answered"),
        ("ask.2", "AwaitDecision", "Decided"),
    ]
    assert [question.recommendation for question in answers.asked] == ["it is 8", "it is 8"]
    for part in ("a.1", "exchange.1", "model.1", "double.1", "exchange.2", "ask.2"):
        assert part in end.drawing


async def test_a_transcript_goes_on_over_turns() -> None:
    """DA-13. The reviewer's words are said to the agent that said all else before."""
    seen: list[tuple[str, ...]] = []

    def clerk(request: ModelRequest) -> ModelAnswer:
        seen.append(tuple(message.content for message in request.messages))
        return ModelAnswer("yes")

    edges = [
        {"from": "a", "to": "ask"},
        {"from": "ask", "to": "end", "condition": "approve"},
        {"from": "ask", "to": "a", "condition": "more_info"},
    ]
    answers = Answers({"ask": [said("more_info", "Why?"), said("approve")]})
    await run_local(house(clerk, answers), pinned(workflow("w", [AGENT, CASE], edges)), {"n": 1})
    assert seen == [('{"n":1}',), ('{"n":1}', "yes", "Why?")]


async def test_branches_join_in_their_order() -> None:
    """AW-4. All start together, the value is by branch, each is a handler below the visit."""
    node = {
        "id": "gather",
        "type": "PARALLEL",
        "outputKey": "all",
        "branches": [branch(AGENT, id="web"), branch(TOOL, id="sum"), {"id": "rest", "type": "WAIT", "duration": 0}],
    }
    end = await run_local(house(says("found")), pinned(workflow("w", [node])), {"n": 2})
    assert end.output == {"web": "found", "sum": 4, "rest": None}
    assert [step.path for step in end.trace] == ["gather.1/web.1", "gather.1/sum.1", "gather.1/rest.1", "gather.1"]
    assert end.trace[-1][1:] == ("RunBranches", "Joined")


async def test_a_map_runs_its_branch_for_each_item() -> None:
    """AW-4. In item order, with item and index; paths count from 1."""
    node = {
        "id": "each",
        "type": "MAP",
        "items": "input.numbers",
        "outputKey": "all",
        "branches": [branch(TOOL, arguments={"n": "{{ item }}"})],
    }
    made = pinned(workflow("w", [node]))
    end = await run_local(house(), made, {"numbers": [3, 1, 2]})
    assert end.output == [6, 2, 4]
    assert [step.path for step in end.trace] == ["each.1/t.1", "each.1/t.2", "each.1/t.3", "each.1"]
    assert (await run_local(house(), made, {"numbers": []})).output == []


async def test_an_agent_in_a_map_is_told_its_item() -> None:
    """AW-4. With a template item and index, without one the item as JSON; nothing of the other branches."""
    seen: list[tuple[str, ...]] = []

    def clerk(request: ModelRequest) -> ModelAnswer:
        seen.append(tuple(message.content for message in request.messages))
        return ModelAnswer("ok")

    for template, told in ((None, '{"x":1}'), ("{{ index }}: {{ item.x }}", "0: 1")):
        more = {} if template is None else {"inputTemplate": template}
        each = {"id": "m", "type": "MAP", "items": "input.l", "outputKey": "all", "branches": [branch(AGENT, **more)]}
        seen.clear()
        await run_local(house(clerk), pinned(workflow("w", [each])), {"l": [{"x": 1}, {"x": 2}]})
        assert sorted(seen)[0] == (told,)
        assert all(len(messages) == 1 for messages in seen)


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_so_many_branches_are_under_way_at_one_time(most: int) -> None:
    """AW-4. `maxParallel`, started in order."""
    under_way = 0
    seen: list[int] = []

    async def sleep(_seconds: float) -> None:
        nonlocal under_way
        under_way += 1
        seen.append(under_way)
        for _ in range(5):
            await asyncio.sleep(0)
        under_way -= 1

    waits = [{"id": f"w{i}", "type": "WAIT", "duration": 1} for i in range(7)]
    node = {"id": "p", "type": "PARALLEL", "outputKey": "all", "branches": waits, "maxParallel": most}
    end = await run_local(house(sleep=sleep), pinned(workflow("w", [node])), {})
    assert end.status == "COMPLETED"
    assert max(seen) == most


async def test_a_failed_branch_fails_its_node_when_all_have_ended() -> None:
    """AW-4, AW-8. Each failed branch is named, in order; an onError edge may catch it."""
    bad = {"arguments": {"n": -1}}
    branches = [branch(TOOL, id="x", **bad), branch(TOOL, id="y"), branch(TOOL, id="z", **bad)]
    node = {"id": "p", "type": "PARALLEL", "outputKey": "all", "branches": branches}
    end = await run_local(house(), pinned(workflow("w", [node])), {"n": 1})
    assert end.status == "FAILED"
    assert end.reason == "p: 2 of 3 branches failed: x.1: -1 is below 0; z.1: -1 is below 0"
    caught = workflow("w", [node, TOOL], [{"from": "p", "to": "t", "onError": True}])
    end = await run_local(house(), pinned(caught), {"n": 1})
    assert (end.status, end.output) == ("COMPLETED", 2)


async def test_people_in_branches_are_asked_side_by_side() -> None:
    """AW-4. Several open questions, each with its own answer, whichever comes first."""
    gate = asyncio.Event()

    class Slow(Answers):
        async def decide(self, question: Any) -> Any:
            if question.node == "one":
                await gate.wait()
            else:
                gate.set()
            return await super().decide(question)

    branches = [
        {"id": name, "type": "HUMAN_APPROVAL", "decisions": [{"name": "yes"}, {"name": "no"}]}
        for name in ("one", "two")
    ]
    node = {"id": "p", "type": "PARALLEL", "outputKey": "all", "branches": branches}
    answers = Slow({"one": [said("yes", "a")], "two": [said("no", "b")]})
    end = await run_local(house(answers=answers), pinned(workflow("w", [node])), {})
    assert [question.node for question in answers.asked] == ["two", "one"]
    assert end.output == {
        "one": {"decision": "yes", "reason": "a", "reviewer": "ann"},
        "two": {"decision": "no", "reason": "b", "reviewer": "ann"},
    }


SUB = workflow("sub", [TOOL], input={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
CALL = {
    "id": "s",
    "type": "SUBWORKFLOW",
    "workflowRef": "sub",
    "arguments": {"n": "{{ input.n }}"},
    "outputKey": "made",
}


async def test_a_sub_workflow_is_a_run_of_its_own() -> None:
    """AW-4. Its value is outcome and output; it has its own trace."""
    end = await run_local(house(), pinned(workflow("w", [CALL]), SUB), {"n": 4}, UUID(int=7))
    assert end.output == {"outcome": None, "output": 8}
    assert end.trace[0][:] == ("s.1", "RunSubworkflow", "Ended")
    assert [step.path for step in end.subs["s.1"].trace] == ["t.1"]


async def test_a_sub_workflow_that_fails_fails_its_node() -> None:
    """AW-4. With its reason."""
    end = await run_local(house(), pinned(workflow("w", [CALL]), SUB), {"n": -1})
    assert end.status == "FAILED"
    assert end.reason == "s: the run of sub ended FAILED: t: -1 is below 0"
    end = await run_local(house(), pinned(workflow("w", [CALL]), SUB), {"n": "x"})
    assert end.reason is not None
    assert "input.n: 'x' is not of type 'integer'" in end.reason


@pytest.mark.parametrize(
    ("fields", "signals", "value"),
    [
        ({"duration": 0}, {}, None),
        ({"signal": "go"}, {"go": {"x": 1}}, {"x": 1}),
        ({"signal": "go", "duration": 0}, {"go": 5}, {"timedOut": False, "payload": 5}),
        ({"signal": "go", "duration": "PT0S"}, None, {"timedOut": True, "payload": None}),
    ],
)
async def test_a_wait_ends_by_time_or_signal(fields: dict[str, Any], signals: Any, value: Any) -> None:
    """AW-4. Only time, only a signal, or whichever is first."""

    class Silent(Answers):
        async def signal(self, wait: Any, path: str) -> Any:
            if signals is None:
                await asyncio.Event().wait()
            return await super().signal(wait, path)

    node = {"id": "w", "type": "WAIT", "outputKey": "came", **fields}
    end = await run_local(house(answers=Silent(signals=signals)), pinned(workflow("w", [node])), {})
    assert (end.status, end.output) == ("COMPLETED", value)


async def test_what_nobody_answers_ends_the_local_run_with_an_error() -> None:
    """AW-9. Not as a failure of the node: the run itself cannot go on here."""
    edges = [{"from": "ask", "to": "end", "condition": name} for name in ("approve", "more_info")]
    with pytest.raises(NobodyError, match=r"nobody decides at ask\.1"):
        await run_local(house(), pinned(workflow("w", [CASE], edges)), {})
    with pytest.raises(NobodyError, match="more_info needs a reason"):
        await run_local(house(answers=Answers({"ask": [said("more_info")]})), pinned(workflow("w", [CASE], edges)), {})


async def test_input_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"input\.n: 'n' is a required property"):
        await run_local(house(), pinned(SUB), {})


async def test_an_error_that_a_model_raises_fails_the_node() -> None:
    """AW-8. A model failure never flows on."""

    def broken(_request: ModelRequest) -> ModelAnswer:
        raise OSError("line cut")

    end = await run_local(house(broken), pinned(workflow("w", [AGENT])), {})
    assert end.reason == "a.1/exchange.1/model.1: line cut"


async def test_a_tool_that_the_model_may_not_call_is_told_to_it() -> None:
    told: list[str] = []

    def clerk(request: ModelRequest) -> ModelAnswer:
        told.append(request.messages[-1].content)
        if len(told) == 1:
            return ModelAnswer(
                "", (Request("1", "triple", {}), Request("2", "double", {"n": -1}), Request("3", "double", []))
            )
        told.extend(message.content for message in request.messages[-3:])
        return ModelAnswer("well")

    end = await run_local(house(clerk), pinned(workflow("w", [AGENT])), {})
    assert end.output == "well"
    assert told[2] == dumps({"error": "there is no tool 'triple'. Tools that can be called: double."})
    assert told[3] == dumps({"error": "-1 is below 0"})
    assert "error" in told[4]


@tool(effects=False)
def fatal(n: int) -> int:
    """Nothing that can go on."""
    raise FatalError(f"the account {n} is closed")


@tool(effects=False)
def passing(n: int) -> int:
    """Trouble that would pass."""
    raise RetryableError(f"line {n} is busy")


@tool(repeat="transactional")
async def booked(ctx: ToolContext, n: int) -> int:
    """Written in a transaction."""
    return n


@pytest.mark.parametrize(
    ("made", "reason", "caught"),
    [
        (fatal, "t.1: the account 1 is closed", False),
        (passing, "t.1: line 1 is busy", True),
        (booked, "t.1: tool 'booked' writes in a transaction of the database, and a local run has none.", False),
    ],
)
async def test_what_a_tool_raises_ends_node_or_run(made: Tool, reason: str, caught: bool) -> None:
    """AW-8. What is fatal ends the run whatever the edges say; all else is a failure of the node. Tried once."""
    node = {**TOOL, "tool": made.name}
    edges: list[dict[str, Any]] = [{"from": "t", "to": "end"}, {"from": "t", "to": "w", "onError": True}]
    wait = {"id": "w", "type": "WAIT", "duration": 0}
    bundle = pinned(workflow("w", [node, wait], edges), tools=[made])
    end = await run_local(replace(house(), tools=Toolbox([made])), bundle, {"n": 1})
    assert end.status == ("COMPLETED" if caught else "FAILED")
    assert end.state is not None
    assert reason in (end.state.context["errors"].get("t") or end.reason or "")


async def test_a_fatal_branch_ends_the_run_and_what_is_under_way() -> None:
    """AW-8. No more branches are started; those that wait are ended."""
    slept: list[str] = []

    async def sleep(_seconds: float) -> None:
        slept.append("began")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            slept.append("ended")
            raise

    waits = [{"id": f"w{i}", "type": "WAIT", "duration": 1} for i in range(3)]
    branches = [waits[0], branch(TOOL, tool="fatal"), *waits[1:]]
    node = {"id": "p", "type": "PARALLEL", "outputKey": "all", "branches": branches, "maxParallel": 2}
    bundle = pinned(workflow("w", [node]), tools=[fatal])
    end = await run_local(replace(house(sleep=sleep), tools=Toolbox([fatal])), bundle, {"n": 1})
    assert (end.status, end.reason) == ("FAILED", "p.1/t.1: the account 1 is closed")
    assert slept == ["began", "ended"]


@free_tree("talk", version=2)
async def talk(ctx: TreeContext) -> Any:
    """Doubles what it is given."""
    return await ctx.call_tool("double", {"n": ctx.input["n"]})


@pytest.mark.parametrize(("n", "status"), [(4, "COMPLETED"), (-4, "FAILED")])
async def test_a_free_tree_is_a_sub_workflow_too(n: int, status: str) -> None:
    """AW-4. The version that is pinned; its result is the output."""
    app = App(tools=[double], trees=[talk], manifests=[workflow("w", [{**CALL, "workflowRef": "talk"}])])
    trees = {(talk.name, talk.version): talk}
    end = await run_local(house(trees=trees), app.workflow("w"), {"n": n})
    assert end.status == status
    if n > 0:
        assert end.output == {"outcome": None, "output": 8}
    else:
        assert "-4 is below 0" in (end.reason or "")
    assert "double.1" in end.subs["s.1"].drawing


async def test_sub_workflows_can_be_nested() -> None:
    """AW-4. Each has its own run id, tree and trace."""
    keys: list[str] = []

    @tool(effects=False, name="double")
    def keyed(ctx: ToolContext, n: int) -> int:
        """Remembers its key."""
        keys.append(ctx.key)
        return n

    middle = workflow("middle", [{**CALL, "id": "m"}, {**CALL, "id": "m2"}], [{"from": "m", "to": "m2"}])
    bundle = pinned(workflow("w", [{**CALL, "workflowRef": "middle"}]), middle, SUB, tools=[keyed])
    end = await run_local(replace(house(), tools=Toolbox([keyed])), bundle, {"n": 1}, UUID(int=3))
    inner = end.subs["s.1"].subs
    assert list(inner) == ["m.1", "m2.1"]
    assert len(set(keys)) == 2
    again = await run_local(replace(house(), tools=Toolbox([keyed])), bundle, {"n": 1}, UUID(int=3))
    assert keys[:2] == keys[2:]
    assert again.output == end.output
