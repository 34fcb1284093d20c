"""What every benchmark shares: both sides in one run, medians, one form of output.

A benchmark gives samples: figures of ours and of a peer's, one for each round, of whatever unit (a rate, a count,
bytes, milliseconds). `ratio` is above 1 where ours is better, so each figure says whether more or less is better. Rates
are taken per second of processor time, so that a busy machine disturbs both sides alike.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROUNDS = 7
QUICK_ROUNDS = 5


@dataclass(frozen=True)
class Samples:
    """What was measured of `what` on both sides, one figure for each round."""

    what: str
    unit: str
    ours: Sequence[float]
    peer: Sequence[float]
    peer_name: str
    more_is_better: bool = False


@dataclass(frozen=True)
class Pair:
    """Ours and a peer's way to do `what`; each call returns the number of units it did."""

    what: str
    unit: str
    ours: Callable[[], int]
    peer: Callable[[], int]
    peer_name: str


@dataclass(frozen=True)
class Scale:
    """How much to measure."""

    quick: bool

    @property
    def rounds(self) -> int:
        """How often both sides take their turn."""
        return QUICK_ROUNDS if self.quick else ROUNDS


@dataclass(frozen=True)
class Report:
    """What a benchmark found. `broken` are promises that the figures do not hold; with any, it fails."""

    samples: Sequence[Samples]
    broken: Sequence[str] = ()


@dataclass(frozen=True)
class Result:
    """Medians of one pair of samples. `ratio` is None where the better side is nothing at all."""

    what: str
    unit: str
    ours: float
    peer: float
    peer_name: str
    ratio: float | None


def result(samples: Samples) -> Result:
    """The medians, rounded to what can be told apart, and their ratio."""
    mine, theirs = statistics.median(samples.ours), statistics.median(samples.peer)
    better, worse = (mine, theirs) if samples.more_is_better else (theirs, mine)
    ratio = 1.0 if better == worse else None if worse == 0 else round(better / worse, 2)
    return Result(samples.what, samples.unit, _rounded(mine), _rounded(theirs), samples.peer_name, ratio)


def _rounded(figure: float) -> float:
    return round(figure) if figure >= 100 or figure == int(figure) else round(figure, 1 if figure >= 10 else 2)


def rates(pairs: Sequence[Pair], rounds: int) -> list[Samples]:
    """Units per second of processor time: both sides of each pair in turn, `rounds` times."""
    return [_rates(pair, rounds) for pair in pairs]


def _rates(pair: Pair, rounds: int) -> Samples:
    ours, peer = [], []
    for _ in range(rounds):
        ours.append(_rate(pair.ours))
        peer.append(_rate(pair.peer))
    return Samples(pair.what, pair.unit, ours, peer, pair.peer_name, more_is_better=True)


def _rate(work: Callable[[], int]) -> float:
    gc.collect()
    began = time.process_time()
    units = work()
    return units / (time.process_time() - began)


def in_child(module: str, *given: object, seconds: float) -> float | None:
    """The figure that `python -m module given...` prints last; None where it fails, or takes longer than `seconds`.

    For what disturbs its surroundings: memory, depth, and whatever may hang.
    """
    command = [sys.executable, "-m", module, *map(str, given)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    return None if done.returncode else float(done.stdout.split()[-1])


def furthest(reaches: Callable[[int], bool], most: int, precision: float = 0.05) -> int:
    """About the largest number up to `most` that `reaches`, found by doubling and halving; 0 if it is below 16."""
    low, high = 0, 16
    while high < most and reaches(high):
        low, high = high, high * 2
    if high >= most:
        if reaches(most):
            return most
        high = most
    while low and high - low > max(1, precision * low):
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low


def machine() -> str:
    """Processor count, architecture and Python, as far as figures depend on them."""
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


def main(name: str, measure: Callable[[Scale], Report]) -> None:
    """Run a benchmark as a command: `--quick` ends within a minute, `--json` prints one object.

    The exit code is not 0 where a promise does not hold; standard error says which.
    """
    parser = argparse.ArgumentParser(description=f"Benchmark {name}: this project beside its peers.")
    parser.add_argument("--quick", action="store_true", help="smaller work, fewer rounds")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    given = parser.parse_args()
    report = measure(Scale(given.quick))
    results = [result(each) for each in report.samples]
    if given.json:
        print(json.dumps({"name": name, "machine": machine(), "results": [asdict(each) for each in results]}))
    else:
        _show(name, results)
    for promise in report.broken:
        print(f"{name}: a promise does not hold: {promise}", file=sys.stderr)
    sys.exit(1 if report.broken else 0)


def _show(name: str, results: Sequence[Result]) -> None:
    print(f"{name} ({machine()}), medians")
    for each in results:
        print(f"  {each.what}: {each.ours:,} {each.unit}; {each.peer_name} {each.peer:,}; ratio {each.ratio}")


if __name__ == "__main__":
    sys.exit("Run a benchmark, such as: python -m benchmarks.tasktree --quick")
