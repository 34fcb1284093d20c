"""One turn of the benchmark of processes, on real servers: what is counted, not what is timed."""

from __future__ import annotations

import pytest
from benchmarks.process import CLAIMERS, OURS, PGQUEUER, PROCRASTINATE, TRANSACTIONAL, Size, compare, samples


@pytest.mark.timeout(300)
async def test_every_side_works_and_claims() -> None:
    """Ours, PgQueuer and Procrastinate on one PostgreSQL, in one run; each claim takes what it asks for."""
    found = await compare(Size(items=5, waiting=3_000, rounds=1))

    assert set(found) == {OURS, TRANSACTIONAL, PGQUEUER, PROCRASTINATE}
    for name, turns in found.items():
        assert [len(each) for each in vars(turns).values()] == [1] * 3 + [int(name in CLAIMERS)] * 3
    assert all(figure > 0 for each in samples(found) for figure in (*each.ours, *each.peer) if "CPU" not in each.what)
