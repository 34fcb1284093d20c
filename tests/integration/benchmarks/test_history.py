"""The benchmark of growing histories, on real servers: what is counted, on a few exchanges."""

from __future__ import annotations

import pytest
from benchmarks.history import Found, Growth, Reach, compare, report
from benchmarks.support.weights import Weight


@pytest.mark.timeout(300)
async def test_our_history_grows_in_a_straight_line() -> None:
    """DA-21. The peer's exchanges get heavier with each; ours do not."""
    found = await compare((4, 12), rounds=1, far=6)

    (ours,), (peer,) = found.ours, found.peer
    assert ours.at[12].bytes_each <= 1.2 * ours.at[4].bytes_each
    assert peer.at[12].bytes_each > 2 * peer.at[4].bytes_each
    assert found.reach == Reach(6, 6, 6)
    assert not report(found, far=6).broken


def growth(of_few: int, of_many: int) -> Growth:
    return Growth({10: Weight(10, 10 * of_few, 120), 100: Weight(100, 100 * of_many, 1200)})


def test_growth_is_a_broken_promise() -> None:
    """DA-21. The benchmark fails when an exchange weighs more than 1.2 times what it weighed."""
    peer = [growth(1000, 8000)]
    assert not report(Found([growth(1000, 1200)], peer)).broken
    assert report(Found([growth(1000, 1300)], peer)).broken == ["bytes of an exchange grow 1.30 times"]


def test_a_run_that_is_stopped_is_a_broken_promise() -> None:
    """DA-21. Ours must come to the end, wherever the peer is stopped."""
    side = [growth(1000, 1000)]
    assert not report(Found(side, side, Reach(500, 130, 390))).broken
    assert report(Found(side, side, Reach(400, 130, 390))).broken == ["ours was stopped after 400 of 500 exchanges"]
