"""A free tree under plain asyncio: the same nodes, names and errors, with models and tools asked directly."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from casework.agents import ModelAnswer, ModelRequest, Repeat, Request, ToolContext, tool
from casework.errors import (
    FatalError,
    GivenUpError,
    InputError,
    NotFoundError,
    RetryableError,
    ToldError,
    UnserialisableError,
)
from casework.graph.manifests import AiAgent, AiAgentSpec, Metadata
from casework.tasktree import Commander, Job, NodeFailedError, Stage, TaskNode, call, current_node, handler, submit
from casework.trees import TreeContext, free_tree, local_context

ADA = AiAgent(metadata=Metadata(name="ada"), spec=AiAgentSpec(provider="x", system_prompt="Be Ada."))


@tool(effects=False)
def double(number: Decimal) -> Decimal:
    """Twice as much; nothing below nothing."""
    if number < 0:
        raise ToldError("double: not below nothing")
    if number > 1000:
        raise RetryableError("double: too busy")
    if number == 13:
        raise FatalError("double: never")
    return number * 2


@tool(repeat=Repeat.KEYED)
def where(ctx: ToolContext) -> dict[str, Any]:
    """What a tool sees."""
    return {"path": ctx.path, "key": ctx.key, "evidence": dict(ctx.evidence), "input": dict(ctx.input)}


def echo(request: ModelRequest) -> ModelAnswer:
    said = [message.content for message in request.messages]
    return ModelAnswer(text=f"{request.system} {' | '.join(said)}")


async def run(body: Any, given: dict[str, Any] | None = None, **models: Any) -> tuple[Any, list[str]]:
    """The result of a tree, and the paths of all nodes, in the order of their starts."""
    paths: list[str] = []

    def watch(node: TaskNode, stage: Stage) -> None:
        if stage in (Stage.AT_JOB_START, Stage.AT_HANDLER_START):
            paths.append(node.path)

    ctx = local_context(given, models, [double, where], [ADA])
    return await free_tree("talk", version=1)(body).run(ctx, listener=watch), paths


async def test_an_agent_has_a_transcript_of_its_own() -> None:
    """TT-24. What was said to one is heard by it alone, in order; its words and its place in the tree are its own."""

    async def body(ctx: TreeContext) -> list[Any]:
        return [await ctx.ask("ada", "one"), await ctx.ask("bob", "two"), await ctx.ask("ada", "three")]

    result, paths = await run(body, ada=echo, bob=echo)
    assert result == ["Be Ada. one", " two", "Be Ada. one | Be Ada. one | three"]
    assert paths == ["talk.1", "talk.1/model.1", "talk.1/model.2", "talk.1/model.3"]


async def test_asks_of_one_agent_wait_for_each_other() -> None:
    """DA-28. Those of several do not."""
    under_way: list[str] = []

    async def slow(request: ModelRequest) -> ModelAnswer:
        name = request.messages[-1].agent
        under_way.append(name)
        assert under_way.count(name) == 1
        for _ in range(5):
            await asyncio.sleep(0)
        both.append(len(under_way))
        under_way.remove(name)
        return ModelAnswer(text=request.messages[-1].content)

    both: list[int] = []

    async def body(ctx: TreeContext) -> list[Any]:
        asks = [call(one(ctx, name, str(n))) for n, name in enumerate(("ada", "bob", "ada"))]
        return [await ask for ask in asks]

    result, _ = await run(body, ada=slow, bob=slow)
    assert result == ["0", "1", "2"]
    assert max(both) == 2


@handler
async def one(ctx: TreeContext, name: str, words: str) -> Any:
    return await ctx.ask(name, words)


async def test_tools_get_a_key_of_their_place() -> None:
    """DA-23. The same place has the same key in every run; what tools found before is evidence."""

    async def body(ctx: TreeContext) -> list[Any]:
        return [await ctx.call_tool("double", {"number": "1.10"}), await ctx.call_tool("where", {})]

    (doubled, seen), _ = await run(body, {"topic": "x"})
    assert doubled == Decimal("2.20")
    assert (seen["path"], seen["evidence"], seen["input"]) == ("talk.1/where.1", {"double": doubled}, {"topic": "x"})
    assert seen == (await run(body, {"topic": "x"}))[0][1]


@pytest.mark.parametrize(
    ("number", "error"), [(-1, ToldError), ("no", ToldError), (1001, GivenUpError), (13, FatalError)]
)
async def test_a_tool_that_fails_raises_what_it_would_durably(number: Any, error: type[Exception]) -> None:
    """DA-18. The classes are the same; the attempts are one."""

    async def body(ctx: TreeContext) -> Any:
        return await ctx.call_tool("double", {"number": number})

    with pytest.raises(NodeFailedError) as found:
        await run(body)
    assert found.value.path == "talk.1/double.1"
    assert type(found.value.__cause__) is error


async def test_a_model_that_gives_no_answer_is_given_up_and_forgotten() -> None:
    """DA-18. Whatever the reason, the tree may catch it; the next ask hears nothing of it."""

    def moody(request: ModelRequest) -> ModelAnswer:
        words = request.messages[-1].content
        if words == "refuse":
            raise FatalError("the account is closed")
        if words == "tools":
            return ModelAnswer(requests=(Request("c", "double", {}),))
        return echo(request)

    async def body(ctx: TreeContext) -> list[str]:
        told = []
        for words in ("refuse", "tools"):
            with pytest.raises(GivenUpError) as found:
                await ctx.ask("ada", words)
            told.append(str(found.value))
        return [*told, await ctx.ask("ada", "well?")]

    result, _ = await run(body, ada=moody)
    assert result[0] == "talk.1/model.1: the account is closed"
    assert "asked for tools (double)" in result[1]
    assert result[2] == "Be Ada. well?"


async def test_misuse_is_refused_at_the_call() -> None:
    """TT-20. An unknown agent or tool, no text, no mapping, too much, what cannot be stored."""

    async def body(ctx: TreeContext) -> list[str]:
        wrong: list[Any] = [
            (ctx.ask, "eve", "hello"), (ctx.ask, "ada", None), (ctx.ask, "ada", "x" * 300_000),
            (ctx.call_tool, " ", {}), (ctx.call_tool, "x" * 65, {}), (ctx.call_tool, "double", None),
            (ctx.call_tool, "double", {"number": object()}), (ctx.call_tool, "treble", {}),
        ]  # fmt: skip
        made = []
        for way, *given in wrong:
            with pytest.raises((InputError, NotFoundError)) as found:
                await way(*given)
            made.append(type(found.value).__name__)
        return made

    result, _ = await run(body, ada=echo)
    wrong, unknown, not_stored = "InputError", "NotFoundError", UnserialisableError.__name__
    assert result == [unknown, wrong, not_stored, wrong, wrong, wrong, not_stored, unknown]


async def test_the_input_is_plain_data_as_in_a_run() -> None:
    """A fraction is a Decimal, whatever was given; the caller's mapping stays the caller's."""
    given = {"share": 0.1, "names": ["a"]}

    async def body(ctx: TreeContext) -> Any:
        ctx.input["names"].append("b")
        return ctx.input["share"]

    result, _ = await run(body, given)
    assert result == Decimal("0.1")
    assert given["names"] == ["a"]


async def test_a_job_class_can_be_a_tree_and_a_tree_part_of_another() -> None:
    """TT-6. The top node has the tree's name; called inside another tree it is what it was written as."""

    class Speak(Job):
        def __init__(self, ctx: TreeContext) -> None:
            self.ctx = ctx

        async def task(self) -> str:
            assert current_node() is self
            return self.path

    speaking = free_tree("speaking", version=1)(Speak)
    assert await speaking.run(local_context()) == "speaking.1"

    async def body(ctx: TreeContext) -> str:
        made: str = await submit(speaking(ctx))
        return made

    assert (await run(body))[0] == "talk.1/Speak.1"
    assert await Commander().run(speaking.job(local_context())) == "speaking.1"
