"""What every benchmark shares: both sides alternating, medians, one form of output.

A benchmark gives pairs of functions that do the same work and return how many units they did. The result is units per
second of processor time, so that a busy machine disturbs both sides alike; `ratio` is above 1 where ours is better.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

ROUNDS = 7
QUICK_ROUNDS = 5


@dataclass(frozen=True)
class Pair:
    """Ours and a peer's way to do `what`; each call returns the number of units it did."""

    what: str
    unit: str
    ours: Callable[[], int]
    peer: Callable[[], int]
    peer_name: str


@dataclass(frozen=True)
class Result:
    """Medians of one pair."""

    what: str
    unit: str
    ours: float
    peer: float
    peer_name: str
    ratio: float


def measure(pair: Pair, rounds: int) -> Result:
    """Both sides in turn, `rounds` times."""
    ours, peer = [], []
    for _ in range(rounds):
        ours.append(_rate(pair.ours))
        peer.append(_rate(pair.peer))
    mine, theirs = statistics.median(ours), statistics.median(peer)
    return Result(pair.what, pair.unit, round(mine), round(theirs), pair.peer_name, round(mine / theirs, 2))


def _rate(work: Callable[[], int]) -> float:
    gc.collect()
    began = time.process_time()
    units = work()
    return units / (time.process_time() - began)


def machine() -> str:
    """Processor count, architecture and Python, as far as figures depend on them."""
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


def main(name: str, pairs: Callable[[bool], Sequence[Pair]]) -> None:
    """Run a benchmark as a command: `--quick` ends within a minute, `--json` prints one object."""
    parser = argparse.ArgumentParser(description=f"Benchmark {name}: this project beside its peers.")
    parser.add_argument("--quick", action="store_true", help="smaller work, fewer rounds")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    given = parser.parse_args()
    results = [measure(pair, QUICK_ROUNDS if given.quick else ROUNDS) for pair in pairs(given.quick)]
    if given.json:
        print(json.dumps({"name": name, "machine": machine(), "results": [asdict(each) for each in results]}))
        return
    print(f"{name} ({machine()}), medians")
    for each in results:
        print(f"  {each.what}: {each.ours:,.0f} {each.unit}; {each.peer_name} {each.peer:,.0f}; ratio {each.ratio}")


if __name__ == "__main__":
    sys.exit("Run a benchmark, such as: python -m benchmarks.tasktree --quick")
