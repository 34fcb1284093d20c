"""The task tree beside `asyncio.TaskGroup` and `agere`, without a listener: speed, memory, and how deep a tree can be.

Jobs and handlers here do nothing, so a figure is the price of one node of the tree.

- *handlers* and *Jobs* are started and ended per second of processor time.
- *bytes of an open handler* is all that Python allocates for one that waits, its asyncio task included; *of a Job in
  the queue*, for one whose turn has not come. *Bytes of an ended handler* is what stays: a tree keeps its ended nodes
  with their results to be looked at, unless it is told `keep="none"`; the peer keeps none.
- *Jobs in a chain* are each submitted by the one before, and its child; *levels of handlers* are each called by the one
  above. Ours runs the whole figure that is asked for, and the benchmark fails where it does not; the peer's figure is
  the largest that ends, about. Past it `RecursionError` ends the peer's run, or the run never ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness import Pair, Report, Samples, Scale, furthest, in_child, main, rates
from benchmarks.support.trees import AgereCalls, AgereSubmits, Calls, Submits, agere, ours, task_group

PROBE = "benchmarks.support.tree_probe"
CHAIN = 1_000_000
DEPTH = 100_000
MEMORY = (
    ("bytes of an open handler", "open", "ours", "agere", "agere"),
    ("bytes of an open handler", "open", "ours", "task", "asyncio.Task"),
    ("bytes of a Job in the queue", "queued", "ours", "agere", "agere"),
    ('bytes of an ended handler, keep="all"', "ended", "ours", "agere", "agere"),
    ('bytes of an ended handler, keep="none"', "ended", "ours-keep-none", "agere", "agere"),
)


def pairs(quick: bool) -> Sequence[Pair]:
    """What is compared in speed; the amount of work per call."""
    count = 5_000 if quick else 20_000
    return [
        Pair("handlers", "per CPU second", lambda: ours(Calls, count), lambda: task_group(count), "asyncio.TaskGroup"),
        Pair("handlers", "per CPU second", lambda: ours(Calls, count), lambda: agere(AgereCalls, count), "agere"),
        Pair("Jobs", "per CPU second", lambda: ours(Submits, count), lambda: agere(AgereSubmits, count), "agere"),
    ]


def memory(count: int) -> list[Samples]:
    """Bytes of a node. Each side is measured in a process of its own; its count of bytes varies by nothing worth
    telling, so one round is enough.
    """
    return [
        Samples(what, "", [_bytes(probe, mine, count)], [_bytes(probe, theirs, count)], name)
        for what, probe, mine, theirs, name in MEMORY
    ]


def _bytes(probe: str, side: str, count: int) -> float:
    found = in_child(PROBE, probe, side, count, seconds=120)
    if found is None:
        raise RuntimeError(f"the measurement {probe} of {side} failed. Run: python -m {PROBE} {probe} {side} {count}")
    return found


def reach(what: str, probe: str, most: int) -> Samples:
    """How deep a tree ends well: ours all of `most` or nothing, the peer as far as it comes."""
    mine = in_child(PROBE, probe, "ours", most, seconds=900) or 0
    peer = furthest(lambda count: in_child(PROBE, probe, "agere", count, seconds=10 + count / 2000) is not None, most)
    return Samples(what, "", [mine], [peer], "agere", more_is_better=True)


def measure(scale: Scale) -> Report:
    """All of it. A depth that is not reached is a promise that does not hold; speeds are for the reader to judge."""
    part = 20 if scale.quick else 1
    speeds = rates(pairs(scale.quick), scale.rounds)
    reached = [
        reach("Jobs in a chain", "chain", CHAIN // part),
        reach("levels of handlers", "depth", DEPTH // part),
    ]
    broken = [f"{each.what}: our tree did not come to its end" for each in reached if not each.ours[0]]
    return Report([*speeds, *memory(2_000 if scale.quick else 20_000), *reached], broken)


if __name__ == "__main__":
    main("tasktree", measure)
