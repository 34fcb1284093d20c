"""One round of the benchmark of engine actions, on real servers: what is counted, not what is timed."""

from __future__ import annotations

import pytest
from benchmarks.actions import Cost, Costs, compare, report


@pytest.mark.timeout(300)
async def test_a_run_costs_at_most_half_of_the_plain_pattern() -> None:
    """DA-50. The plain pattern needs 33 activities, a start and a signal; ours at most half as many actions."""
    found = await compare(rounds=1, warm_up=0)

    assert [cost.actions for cost in found.peer] == [35]
    assert all(2 * cost.actions <= 35 for cost in found.ours)
    assert all(mine.history_bytes < theirs.history_bytes for mine, theirs in zip(found.ours, found.peer, strict=True))
    assert not report(found).broken


def test_more_than_half_is_a_broken_promise() -> None:
    """DA-50. The benchmark fails when a run costs more than half."""

    def costs(actions: int) -> Costs:
        return Costs([Cost(actions, 1, 1, 1, 1, 1)], [Cost(35, 1, 1, 1, 1, 1)], (1, 1))

    assert not report(costs(17)).broken
    assert report(costs(18)).broken == ("18 actions are more than half of 35",)
