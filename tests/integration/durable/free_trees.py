"""Free trees for tests. This module is loaded anew in the sandbox of every run; what lies in `tree_notes` is not."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

from temporalio import workflow

from casework.errors import GivenUpError, ToldError
from casework.graph.manifests import AiAgent, AiAgentSpec, LlmProvider, LlmProviderSpec, Metadata
from casework.tasktree import (
    Commander,
    Job,
    NodeFailedError,
    Stage,
    TaskNode,
    ThreadsRefusedError,
    TimeLimitError,
    call,
    current_node,
    handler,
    submit,
)
from casework.trees import FreeTree, TreeContext, free_tree

with workflow.unsafe.imports_passed_through():
    from tests.integration.durable.tree_notes import NOTES


def agent(name: str, script: str = "parrot", **spec: Any) -> tuple[AiAgent, LlmProvider]:
    """An agent with a provider of its own."""
    return (
        AiAgent(metadata=Metadata(name=name), spec=AiAgentSpec(provider=name, **spec)),
        LlmProvider(metadata=Metadata(name=name), spec=LlmProviderSpec(type="scripted", script=script)),
    )


BOTH = (*agent("ada"), *agent("bob"))


class Round(Job):
    """Asks both at once, and says what was said to the next round."""

    def __init__(self, ctx: TreeContext, top: TaskNode, left: int) -> None:
        self.ctx, self.top, self.left = ctx, top, left

    async def task(self) -> Any:
        return self.go()

    @handler
    async def go(self) -> list[str]:
        asks = [call(self.one(name).named(name)) for name in ("ada", "bob")]
        said = [await each for each in asks]
        if self.left > 1:
            submit(Round(self.ctx, self.top, self.left - 1), parent=self.top)
        return said

    @handler
    async def one(self, name: str) -> str:
        return await self.ctx.ask(name, f"round {self.left}")


@free_tree("rounds", version=1, agents=BOTH)
async def rounds(ctx: TreeContext) -> dict[str, Any]:
    """Rounds in which two agents are asked at the same time; then a tool."""
    top, left = current_node(), ctx.input.get("rounds", 2)
    await submit(Round(ctx, top, left))
    for number in range(1, left):
        await top.children[number]
    weighed = await ctx.call_tool("weigh", {"weight": left})
    return {"weighed": weighed, "last": [each.result for each in top.children if isinstance(each, Round)][-1]}


@free_tree("errand", version=1, agents=BOTH)
async def errand(ctx: TreeContext) -> Any:
    """Does what its input says, one word of it after the other; returns what each gave, errors by their names."""
    made = []
    for what, given in ctx.input["do"]:
        try:
            made.append(await (ctx.ask(what, given) if isinstance(given, str) else ctx.call_tool(what, given)))
        except (ToldError, GivenUpError) as error:
            made.append(f"{type(error).__name__}: {error}")
    return made


class Deep(Job):
    async def task(self) -> Any:
        return self.fail()

    @handler
    async def fail(self) -> None:
        raise LookupError("no such thing")


@free_tree("failing", version=1)
async def failing(_: TreeContext) -> None:
    """Fails below."""
    await submit(Deep())


@free_tree("stubborn", version=1, agents=BOTH)
async def stubborn(ctx: TreeContext) -> str:
    """Passes over every error."""
    try:
        await ctx.call_tool("unheard_of", {})
    except Exception:  # noqa: BLE001  # that is what it is for
        return "all is well"
    return "it was there"


@free_tree("clock", version=1)
async def clock(_: TreeContext) -> float:
    """Asks the machine for the time."""
    return time.time()


@free_tree("dice", version=1)
async def dice(_: TreeContext) -> float:
    """Leaves it to chance."""
    return random.random()


@free_tree("reader", version=1)
async def reader(_: TreeContext) -> str:
    """Reads a file."""
    with open(__file__) as file:  # noqa: ASYNC230  # what is refused
        return file.read()


@free_tree("sleeper", version=1, agents=BOTH)
async def sleeper(ctx: TreeContext) -> str:
    """Waits for long, with a callback on its node; another node waits below."""
    current_node().on(Stage.AT_TERMINATE, NOTES.append, "terminated").on(Stage.AT_JOB_END, NOTES.append, "ended")
    seconds = ctx.input.get("seconds", 3600)
    call(waits(seconds).on(Stage.AT_TERMINATE, NOTES.append, "terminated below"))
    NOTES.append("began")
    said: str = await ctx.ask("ada", "before")
    await asyncio.sleep(seconds)
    return said


@handler
async def waits(seconds: int) -> None:
    await asyncio.sleep(seconds)


@free_tree("unanswered", version=1, agents=BOTH)
async def unanswered(ctx: TreeContext) -> str:
    """Takes no care of a model that refuses."""
    return await ctx.ask("ada", "refuse")


@free_tree("in-thread", version=1)
async def in_thread(_: TreeContext) -> str:
    """Starts a thread."""
    return await asyncio.to_thread(str, 1)


@free_tree("own-cancel", version=1)
async def own_cancel(_: TreeContext) -> None:
    """Raises what only the engine should."""
    raise asyncio.CancelledError


@free_tree("weird", version=1)
async def weird(_: TreeContext) -> Any:
    """Returns what nothing can store."""
    return object()


@free_tree("many", version=1, agents=BOTH, max_events=20_000)
async def many(ctx: TreeContext) -> list[str]:
    """Asks both often at once."""
    asks = [call(one_ask(ctx, ("ada", "bob")[n % 2], str(n))) for n in range(ctx.input["asks"])]
    return [await each for each in asks]


@free_tree("ended-ask", version=1, agents=BOTH)
async def ended_ask(ctx: TreeContext) -> list[str]:
    """Ends one ask in flight, and asks the same agent again."""
    slow = call(one_ask(ctx, "bob", "slow"))
    await ctx.ask("ada", "meanwhile")
    await slow.terminate()
    return [slow.state.name, await ctx.ask("bob", "again")]


@handler
async def one_ask(ctx: TreeContext, name: str, words: str) -> str:
    return await ctx.ask(name, words)


@free_tree("in-time", version=1, agents=BOTH)
async def in_time(ctx: TreeContext) -> list[str]:
    """An ask that takes longer than its node may."""
    try:
        await call(one_ask(ctx, "bob", "slow").within(1))
    except TimeLimitError as error:
        return [type(error).__name__, await ctx.ask("bob", "again")]
    return []


@free_tree("threads", version=1)
async def threads(_: TreeContext) -> str:
    """What only another thread would need."""
    try:
        current_node().commander.submit_threadsafe(Nothing())
    except ThreadsRefusedError as error:
        return type(error).__name__
    return "taken"


@free_tree("waiting", version=1, agents=BOTH)
async def waiting(ctx: TreeContext) -> None:
    """An ask that takes long, and a tool beside it."""
    slow = call(one_ask(ctx, "bob", "slow"))
    await ctx.call_tool("weigh", {"weight": 1})
    await slow


@free_tree("endless", version=1, agents=BOTH, max_events=60)
async def endless(ctx: TreeContext) -> None:
    """Asks for ever; its errors stay with it."""
    while True:
        await ctx.ask("ada", "again")


@free_tree("bulk", version=1)
async def bulk(ctx: TreeContext) -> int:
    """Calls a tool very often at once, with long arguments."""
    calls = [call(one_length(ctx, n)) for n in range(ctx.input["calls"])]
    return sum([await each for each in calls])


@handler
async def one_length(ctx: TreeContext, number: int) -> int:
    made: int = await ctx.call_tool("length", {"text": "x" * (ctx.input["length"] + number)})
    return made


@free_tree("row", version=1, agents=BOTH)
async def row(ctx: TreeContext) -> list[str]:
    """Two asks, a tool that may take for ever, a long rest, and an ask."""
    said = [await ctx.ask("ada", word) for word in ("one", "two")]
    said.append(await ctx.call_tool("wait_here", {}))
    await asyncio.sleep(ctx.input.get("seconds", 0))
    return [*said, await ctx.ask("ada", "three")]


@free_tree("jobs", version=1)
async def jobs(ctx: TreeContext) -> int:
    """Very many Jobs, none of which asks anybody."""
    top = current_node()
    for number in range(ctx.input["jobs"]):
        await submit(Nothing(), parent=top)
        if number % 200 == 199:
            await asyncio.sleep(0.01)  # a workflow task must end within two seconds
    return len(top.children)


class Nothing(Job):
    async def task(self) -> None:
        return None


@free_tree("raises", version=1)
async def raises(_: TreeContext) -> str:
    """A callback that fails; it changes nothing."""
    current_node().on(Stage.AT_JOB_END, lambda: 1 / 0)
    return "done"


@free_tree("misuse", version=1, agents=BOTH)
async def misuse(ctx: TreeContext) -> list[str]:
    """What is refused at the call, each with its error's name."""
    wrong: list[Any] = [
        ctx.ask("eve", "hello"), ctx.ask("ada", 5), ctx.ask("ada", "x" * 300_000), ctx.call_tool("", {}),  # type: ignore[arg-type]  # the misuse
        ctx.call_tool("weigh", [1]), ctx.call_tool("weigh", {"weight": object()}),  # type: ignore[arg-type]  # again
    ]  # fmt: skip
    made = []
    for each in wrong:
        try:
            await each
        except Exception as error:  # noqa: BLE001  # its name is the result
            made.append(type(error).__name__)
    return made


class Ordered(Job):
    """A tree that is a Job class."""

    def __init__(self, ctx: TreeContext) -> None:
        self.ctx = ctx

    async def task(self) -> Any:
        return self.go()

    @handler
    async def go(self) -> str:
        return str(await self.ctx.ask("ada", self.ctx.input["words"]))


ordered = free_tree("ordered", version=1, agents=BOTH)(Ordered)


@free_tree("versions", version=1)
async def first_version(_: TreeContext) -> str:
    """The older."""
    return "one"


@free_tree("versions", version=2, input={"type": "object", "required": ["word"]})
async def second_version(ctx: TreeContext) -> str:
    """The newer."""
    return f"two {ctx.input['word']}"


@free_tree("patient", version=1)
async def patient(_: TreeContext) -> str:
    """Waits for a while, and asks nobody."""
    await asyncio.sleep(3)
    return "done"


@free_tree("nested", version=1, agents=BOTH)
async def nested(ctx: TreeContext) -> str:
    """Asks, then runs a Commander of its own, whose nodes ask."""

    class Asks(Job):
        async def task(self) -> Any:
            return await ctx.ask("ada", "hello")

    await ctx.ask("ada", "hello")
    try:
        return str(await Commander().run(Asks()))
    except NodeFailedError as error:
        return str(error.__cause__)


ALL = tuple(made for made in list(globals().values()) if isinstance(made, FreeTree))
