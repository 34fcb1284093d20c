"""The benchmark of the graph: every side goes round the same loop and comes to the same number."""

from __future__ import annotations

import pytest
from benchmarks import graph
from benchmarks.graphs.durable import DBOS_STEPS, OURS, OURS_APART, OURS_CLAIMED, SAVER, SAVER_BEHIND, Turns
from benchmarks.graphs.ours import Ours
from benchmarks.graphs.peers import LangGraph, PydanticGraph
from benchmarks.harness import rates, result


@pytest.mark.parametrize("side", [Ours, LangGraph, PydanticGraph])
def test_each_side_counts_two_steps_a_round(side: type[Ours | LangGraph | PydanticGraph]) -> None:
    """AW-11. Each asserts by itself that it has counted to the end."""
    assert side()(7) == 14


def test_speeds_are_measured_on_each_side() -> None:
    """AW-11. Steps per second of processor time, beside both peers in one run."""
    found = rates(graph.pairs(quick=True), 1)
    assert [each.peer_name for each in found] == ["LangGraph", "pydantic-graph"]
    assert all(figure > 0 for each in found for figure in (*each.ours, *each.peer))


def test_what_is_told_of_durable_steps() -> None:
    """AW-11. Rates, processor time, rows and bytes, each beside each peer, ratios above 1 where ours is better."""

    def turns(figure: float) -> Turns:
        lists = ([figure], [figure], [1 / figure], [1 / figure], [1 / figure], [0.0])
        return Turns(2, *lists, rows=1 / figure, kept_bytes=1 / figure)

    made = graph.samples(
        {
            **dict.fromkeys((OURS, OURS_CLAIMED, OURS_APART), turns(2)),
            **dict.fromkeys((SAVER, SAVER_BEHIND, DBOS_STEPS), turns(1)),
        }
    )
    assert {result(each).ratio for each in made} == {2.0}
    assert [each.peer_name for each in made if each.what == "durable steps"] == [SAVER, DBOS_STEPS, SAVER_BEHIND]
    assert {each.unit for each in made if each.peer_name == DBOS_STEPS} == {"per second", "ms", "rows", "bytes"}
