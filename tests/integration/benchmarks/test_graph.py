"""One turn of each durable loop of the graph benchmark, on real servers: what is counted, not what is timed."""

from __future__ import annotations

import pytest
from benchmarks.graph import durable, samples
from benchmarks.graphs.durable import DBOS_STEPS, OURS, OURS_APART, OURS_CLAIMED, OURS_SHORT, SAVER, SAVER_BEHIND


@pytest.mark.timeout(300)
async def test_every_side_walks_the_same_loop_durably() -> None:
    """AW-11. Ours, with and without claims and segments, the Postgres saver and DBOS on one PostgreSQL, in one run."""
    found = await durable(rounds=3, short=2, turns=1, warm_up=0)

    assert set(found) == {OURS, OURS_CLAIMED, OURS_APART, SAVER, SAVER_BEHIND, DBOS_STEPS}
    for name, turns in found.items():
        assert turns.steps == (4 if name in OURS_SHORT else 10)
        assert turns.rows >= 1  # what is durable has left a row for each step
        assert turns.short_per_s[0] > 0
        assert name in OURS_SHORT or turns.log_bytes[0] > 0
    assert found[OURS].history_bytes[0] > 0
    assert found[DBOS_STEPS].history_bytes == [0]
    assert all(figure >= 0 for each in samples(found) for figure in (*each.ours, *each.peer))
