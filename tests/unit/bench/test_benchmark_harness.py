"""The harness of the benchmarks: medians, which side is better, the one form of output, promises."""

from __future__ import annotations

import json
import sys

import pytest
from benchmarks.harness import Pair, Report, Result, Samples, Scale, main, rates, result


def samples(ours: list[float], peer: list[float], *, more_is_better: bool = False) -> Samples:
    return Samples("runs", "ms", ours, peer, "another", more_is_better)


@pytest.mark.parametrize(
    ("given", "ours", "peer", "ratio"),
    [
        (samples([9, 1, 2], [8, 4, 1]), 2, 4, 2.0),
        (samples([30, 20], [10, 10]), 25, 10, 0.4),
        (samples([30], [10], more_is_better=True), 30, 10, 3.0),
        (samples([12.345], [1.2345]), 12.3, 1.23, 0.1),
        (samples([123.45], [1_234_567.8]), 123, 1_234_568, 10000.55),
        (samples([0], [0]), 0, 0, 1.0),
        (samples([0], [5]), 0, 5, None),
        (samples([5], [0], more_is_better=True), 5, 0, None),
        (samples([5], [0]), 5, 0, 0.0),
    ],
)
def test_a_ratio_above_one_means_that_ours_is_better(
    given: Samples, ours: float, peer: float, ratio: float | None
) -> None:
    """Of counts, bytes and times less is better, of rates more; nothing at all has no ratio to something."""
    assert result(given) == Result("runs", "ms", ours, peer, "another", ratio)


def test_rates_take_turns() -> None:
    """Both sides alternate, so that what disturbs the machine disturbs both."""
    turns: list[str] = []

    def side(name: str) -> int:
        turns.append(name)
        return sum(range(100_000)) and 10

    [found] = rates([Pair("work", "per CPU second", lambda: side("ours"), lambda: side("peer"), "another")], 3)

    assert turns == ["ours", "peer"] * 3
    assert len(found.ours) == len(found.peer) == 3
    assert found.more_is_better


def test_quick_is_smaller_and_still_takes_five_rounds() -> None:
    assert Scale(quick=True).rounds == 5
    assert Scale(quick=False).rounds > 5


def test_json_is_one_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Name, machine, results; each result has its figures, the peer's name and the ratio."""
    monkeypatch.setattr(sys, "argv", ["bench", "--json", "--quick"])
    seen: list[bool] = []

    def measure(scale: Scale) -> Report:
        seen.append(scale.quick)
        return Report([samples([1], [2])])

    with pytest.raises(SystemExit) as ended:
        main("bench", measure)

    printed = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert seen == [True]
    assert set(printed) == {"name", "machine", "results"}
    assert printed["results"] == [
        {"what": "runs", "unit": "ms", "ours": 1, "peer": 2, "peer_name": "another", "ratio": 2.0}
    ]


def test_a_broken_promise_fails_the_benchmark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The figures are printed all the same; the exit code is not 0, and the promise is named."""
    monkeypatch.setattr(sys, "argv", ["bench"])

    with pytest.raises(SystemExit) as ended:
        main("bench", lambda _: Report([samples([1], [2])], ["it is slow"]))

    printed = capsys.readouterr()
    assert ended.value.code == 1
    assert "runs: 1 ms; another 2; ratio 2.0" in printed.out
    assert "bench: a promise does not hold: it is slow" in printed.err
