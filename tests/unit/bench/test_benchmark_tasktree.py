"""The benchmark of the task tree: its probes measure both sides, each in a process of its own (TT-26)."""

from __future__ import annotations

import pytest
from benchmarks import tasktree
from benchmarks.harness import furthest, in_child, rates
from benchmarks.support import tree_probe


@pytest.mark.parametrize("most", [20, 1000])
@pytest.mark.parametrize("limit", [0, 15, 16, 17, 100, 999, 1000, 5000])
def test_the_furthest_is_found_by_few_looks(limit: int, most: int) -> None:
    """To one part in twenty, never beyond; what is below sixteen is nothing."""
    looks: list[int] = []

    def reaches(count: int) -> bool:
        looks.append(count)
        return count <= limit

    found = furthest(reaches, most)
    true = min(limit, most)
    assert found <= true
    assert found >= true / 1.07 or true <= 16
    assert len(looks) < 20
    assert max(looks) <= most


@pytest.mark.parametrize("given", [("chain", "agere", 5_000), ("no such probe", "ours", 1)])
def test_what_fails_in_a_child_is_no_figure(given: tuple[str, str, int]) -> None:
    """The peer's chain of five thousand Jobs is beyond it."""
    assert in_child(tasktree.PROBE, *given, seconds=60) is None


def test_what_lasts_too_long_in_a_child_is_no_figure() -> None:
    assert in_child(tasktree.PROBE, "chain", "ours", 1, seconds=0.001) is None


@pytest.mark.parametrize("side", ["ours", "agere"])
@pytest.mark.parametrize("probe", ["chain", "depth"])
def test_a_depth_that_both_reach(probe: str, side: str) -> None:
    """TT-25, TT-26."""
    assert in_child(tasktree.PROBE, probe, side, 50, seconds=60) == 50


@pytest.mark.parametrize(("probe", "side"), sorted({(row[1], side) for row in tasktree.MEMORY for side in row[2:4]}))
def test_memory_is_measured_on_each_side(probe: str, side: str) -> None:
    """TT-26. Bytes of one node: neither nothing nor a page. What a tree forgets takes less than what it keeps."""
    found = in_child(tasktree.PROBE, probe, side, 500, seconds=60)
    assert found is not None
    assert 0 <= found < 5_000


def test_ended_nodes_are_let_go_of() -> None:
    """TT-25, TT-26. With keep="none" an ended handler leaves less behind than one that is kept."""
    kept, forgotten = (
        in_child(tasktree.PROBE, "ended", side, 2_000, seconds=60) for side in ("ours", "ours-keep-none")
    )
    assert kept is not None
    assert forgotten is not None
    assert forgotten < kept / 2


def test_speeds_are_measured_on_each_side() -> None:
    """TT-26. Handlers beside TaskGroup and agere, Jobs beside agere, all in one run."""
    found = rates(tasktree.pairs(quick=True), 1)
    assert [(each.what, each.peer_name) for each in found] == [
        ("handlers", "asyncio.TaskGroup"),
        ("handlers", "agere"),
        ("Jobs", "agere"),
    ]
    assert all(figure > 0 for each in found for figure in (*each.ours, *each.peer))


def test_an_unknown_probe_is_refused() -> None:
    with pytest.raises(KeyError):
        tree_probe.measure("open", "nobody", 1)
