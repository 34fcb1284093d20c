"""A loop of two nodes, beside LangGraph and pydantic-graph in memory, and beside LangGraph's Postgres saver and DBOS.

One node counts, the other asks whether to go round again; a *step* is one execution of one of them, on every side. Ours
are a TOOL node with a Python function and a CONDITION node with an expression; a peer's are two functions, as its own
documentation writes them, called in the faster of its ways: LangGraph's and DBOS's synchronously, pydantic-graph's as
nodes that name the next one.

- *steps without durability* are per second of processor time. Ours run through the task tree, each visit a Job, with
  the trace of a durable run; the tool is declared `inline`, as a peer's function is called without a thread, too.
- *durable steps* are per second of wall time, one run of 1,000 steps at a time, from its start until its end can be
  read. *In a short run* of 200 steps its start and end weigh more, which cost ours more. Ours are runs on a worker,
  Temporal's development server and PostgreSQL; the peers write to the same PostgreSQL, whose commits wait for the disk
  for all alike (`synchronous_commit` and `fsync` are on). Quick nodes of ours share an activity, a *segment*. The tool
  is `inline` here too, as a peer's function is called without a thread; one that only computes is not claimed before
  it acts, nor is a step of a peer's. *Each tool claimed* is the short loop with a tool that may have effects: its step
  has a row before it acts, in a thread of its own. *An activity for each tool* is the same with one that never shares
  an activity: its effects are keyed. What a step has brought is committed everywhere before the next begins. The
  engine's own history is besides in the file of the development server, which a power cut (no crash) may set back by
  some commits (`synchronous=NORMAL`).
- The tool of *steps without durability* in a thread of its own, which is the default, is slower
  (`docs/concepts/what_a_step_costs.md`).
- The Postgres saver is asked to commit a step's checkpoint before the next step begins (`durability="sync"`), as the
  others do. *A step behind* is its default, which commits while the next step runs, and may lose the last.
- *CPU* of a step is that of the process which runs the loop; *with its servers*, that of PostgreSQL and Temporal too.
- *rows* are inserted, updated or deleted in PostgreSQL; *log* is what PostgreSQL writes ahead; *kept* are tables with
  their indexes, and for ours the engine's history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.graphs.durable import (
    DBOS_STEPS,
    OURS,
    OURS_APART,
    OURS_CLAIMED,
    OURS_SHORT,
    SAVER,
    SAVER_BEHIND,
    Turns,
    contest,
)
from benchmarks.graphs.ours import Ours
from benchmarks.graphs.peers import LangGraph, PydanticGraph
from benchmarks.harness import Pair, Report, Samples, Scale, main, rates

PEERS = (SAVER, DBOS_STEPS)


def pairs(quick: bool) -> Sequence[Pair]:
    """What is compared without durability; so many rounds of the loop per call."""
    rounds = 250 if quick else 2_000
    ours, langgraph, pydantic_graph = Ours(), LangGraph(), PydanticGraph()
    for each in (ours, langgraph, pydantic_graph):
        each(10)  # what is loaded at the first call is no part of a step

    def beside(peer: LangGraph | PydanticGraph, name: str) -> Pair:
        what = "steps without durability"
        return Pair(what, "per CPU second", lambda: ours(rounds), lambda: peer(rounds), name)

    return [beside(langgraph, "LangGraph"), beside(pydantic_graph, "pydantic-graph")]


async def durable(rounds: int, short: int, turns: int, warm_up: int = 1) -> Mapping[str, Turns]:
    """All contestants in turn, so often, after `warm_up` turns of each that do not count in times.

    A turn is a run of so many `rounds` and a `short` one; of some of ours the short one alone.
    """
    async with contest() as made:
        for number in range(warm_up + turns):
            for name, contestant in made.contestants.items():
                if name not in OURS_SHORT:
                    await made.turn(name, rounds)
                await made.short_turn(name, short)
                if number < warm_up:
                    contestant.turns.forget_times()
    return {name: contestant.turns for name, contestant in made.contestants.items()}


def samples(found: Mapping[str, Turns]) -> list[Samples]:
    """The figures of the durable loops, ours beside each peer's."""
    return [
        *(_rate("durable steps", found[OURS].per_s, found[name].per_s, name) for name in (*PEERS, SAVER_BEHIND)),
        *(_short("durable steps in a short run", found[OURS], found[name], name) for name in PEERS),
        *(_short("durable steps, each tool claimed", found[OURS_CLAIMED], found[name], name) for name in PEERS),
        *(_short("durable steps, an activity for each tool", found[OURS_APART], found[name], name) for name in PEERS),
        *(each for name in PEERS for each in _costs(found[OURS], found[name], name)),
    ]


def _short(what: str, ours: Turns, peer: Turns, name: str) -> Samples:
    return _rate(what, ours.short_per_s, peer.short_per_s, name)


def _rate(what: str, ours: Sequence[float], peer: Sequence[float], name: str) -> Samples:
    return Samples(what, "per second", ours, peer, name, more_is_better=True)


def _costs(ours: Turns, peer: Turns, name: str) -> list[Samples]:
    return [
        Samples("CPU of a durable step", "ms", ours.own_ms, peer.own_ms, name),
        Samples("CPU of a durable step, with its servers", "ms", ours.all_ms, peer.all_ms, name),
        Samples("rows of a durable step", "rows", [ours.rows], [peer.rows], name),
        Samples("log of a durable step", "bytes", ours.log_bytes, peer.log_bytes, name),
        Samples("kept of a durable step", "bytes", [_kept(ours)], [_kept(peer)], name),
    ]


def _kept(turns: Turns) -> float:
    return turns.kept_bytes + median(turns.history_bytes)


def measure(scale: Scale) -> Report:
    """All of it; which speed is enough is for the reader to judge."""
    in_memory = rates(pairs(scale.quick), scale.rounds)
    rounds, short = (20, 10) if scale.quick else (500, 100)
    kept = asyncio.run(durable(rounds, short, scale.rounds))
    return Report([*in_memory, *samples(kept)])


if __name__ == "__main__":
    main("graph", measure)
