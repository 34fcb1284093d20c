"""The peers' loops, without durability."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from pydantic_graph import BaseNode, End, GraphBuilder, GraphRunContext


class Counted(TypedDict):
    """LangGraph's state."""

    n: int
    upto: int
    again: bool


def _count(state: Counted) -> dict[str, Any]:
    return {"n": state["n"] + 1}


def _more(state: Counted) -> dict[str, Any]:
    return {"again": state["n"] < state["upto"]}


def _way(state: Counted) -> str:
    return "count" if state["again"] else END


def langgraph_loop(checkpointer: Any = None) -> Any:
    """LangGraph's StateGraph: two nodes, a conditional edge."""
    graph = StateGraph(Counted)
    graph.add_node("count", _count)
    graph.add_node("more", _more)
    graph.add_edge(START, "count")
    graph.add_edge("count", "more")
    graph.add_conditional_edges("more", _way, ["count", END])
    return graph.compile(checkpointer=checkpointer)


class LangGraph:
    """Invoked synchronously, which is the faster of its two ways here: `ainvoke` takes a quarter longer."""

    def __init__(self) -> None:
        self._app = langgraph_loop()

    def __call__(self, rounds: int) -> int:
        """Run the loop to its end; the number of steps."""
        made = self._app.invoke({"n": 0, "upto": rounds, "again": True}, {"recursion_limit": 2 * rounds + 10})
        assert made["n"] == rounds
        return 2 * rounds


@dataclass
class Count:
    """pydantic-graph's state."""

    n: int
    upto: int


@dataclass
class Counting(BaseNode[Count, None, int]):
    """Adds one."""

    async def run(self, ctx: GraphRunContext[Count, None]) -> Asking:
        ctx.state.n += 1
        return Asking()


@dataclass
class Asking(BaseNode[Count, None, int]):
    """Goes round again, or ends."""

    async def run(self, ctx: GraphRunContext[Count, None]) -> Counting | End[int]:
        return Counting() if ctx.state.n < ctx.state.upto else End(ctx.state.n)


def pydantic_loop() -> Any:
    """pydantic-graph's builder, with nodes that name the next one."""
    builder = GraphBuilder(state_type=Count, input_type=Counting, output_type=int)
    builder.add(
        builder.node(Counting),
        builder.node(Asking),
        builder.edge_from(builder.start_node).to(Counting),
    )
    return builder.build()


class PydanticGraph:
    """It has no synchronous way."""

    def __init__(self) -> None:
        self._graph = pydantic_loop()

    def __call__(self, rounds: int) -> int:
        """Run the loop to its end; the number of steps."""
        made = asyncio.run(self._graph.run(state=Count(0, rounds), inputs=Counting()))
        assert made == rounds
        return 2 * rounds
