"""Random trees: what holds for every tree, and for every order in which its handlers complete.

A plan is a tree of Jobs and handlers, each of which may fail, or end something. It is run under many schedules: a
schedule says for how many turns of the loop each node waits. Nothing else differs, so nothing else may explain a
difference. What must hold afterwards is written down in `judged.py`.
"""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casework.tasktree import NodeState

from .judged import FINAL, Ending, Finished, Watch, judge, run, tree_of
from .planned import Plan, Planned, Reaction, Turns, act, carry_out, has_job, places

__all__ = ["Plan", "Planned", "Turns", "Watch", "act", "carry_out", "has_job", "plans", "run", "schedules", "tree_of"]

usual = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])

_whens = st.sampled_from(["start", "exception", "terminate", "end", "commander_end"])


def reactions(*, failing: bool) -> st.SearchStrategy[tuple[Reaction, ...]]:
    fails = st.booleans() if failing else st.just(False)
    return st.lists(st.builds(Reaction, _whens, slow=st.booleans(), fails=fails), max_size=3).map(tuple)


def plans(
    *,
    failing: bool,
    ending: bool = False,  # nodes that terminate another, themselves, or exit
    isolating: bool = False,
    timed: bool = False,
    reacting: bool = False,
) -> st.SearchStrategy[Plan]:
    """Plans of one top node with up to some dozen nodes below it."""
    often = st.sampled_from([False, False, False, True])
    ends = st.sampled_from(["", "", "", "", "", "self", "parent", "first", "exit"]) if ending else st.just("")

    def node(children: st.SearchStrategy[tuple[Plan, ...]]) -> st.SearchStrategy[Plan]:
        return st.builds(
            Plan,
            kind=st.sampled_from(["job", "handler"]),
            name=st.sampled_from(["a", "b", "c d"]),
            fails=often if failing else st.just(False),
            awaits=st.booleans(),
            goes_on=st.booleans(),
            children=children,
            pauses=st.booleans(),
            handles=st.booleans() if failing else st.just(False),
            isolates=often if isolating else st.just(False),
            within=st.sampled_from([0, 0, 0, 1, 5, 12, 1000]) if timed else st.just(0),
            ends=ends,
            reactions=reactions(failing=failing) if reacting else st.just(()),
        )

    return st.recursive(node(st.just(())), lambda below: node(st.lists(below, max_size=4).map(tuple)), max_leaves=14)


schedules = st.lists(st.integers(0, 6), min_size=1, max_size=20)

endings = st.builds(
    Ending, st.sampled_from(["", "exit", "cancel", "terminate"]), st.integers(0, 40), st.integers(0, 30)
)


def tops(**what: bool) -> st.SearchStrategy[list[Plan]]:
    return st.lists(plans(**what), min_size=1, max_size=3)


def outcomes(finished: Finished) -> dict[str, tuple[Any, ...]]:
    return {path: (node.name, node.state, node.result) for path, node in finished.watch.nodes.items()}


@usual
@given(tops(failing=True), schedules)
def test_every_node_ends_once_and_children_end_before_parents(tops: list[Plan], schedule: list[int]) -> None:
    """TT-3, TT-4, TT-18. Under random failures and completion orders; what nobody received, `run` tells."""
    finished = run(tops, schedule)
    judge(finished)
    nodes = tree_of(finished.commander)
    assert all(node.state in FINAL for node in nodes)
    assert {node.path: node.state for node in nodes} == finished.watch.ended
    if finished.failure is None:
        assert finished.commander.state is NodeState.COMPLETED
    if not any(plan.fails for _, plan in places(tops)):
        assert all(node.state is NodeState.COMPLETED for node in nodes)


@usual
@given(tops(failing=False, reacting=True), schedules, schedules)
def test_paths_do_not_depend_on_the_schedule(tops: list[Plan], one: list[int], other: list[int]) -> None:
    """TT-2. The same calls in the same order give the same paths, however completions interleave."""
    first, second = run(tops, one), run(tops, other)
    judge(first)
    assert outcomes(first) == outcomes(second)
    assert sorted(first.watch.nodes) == sorted(["", *dict(places(first.plans))])


@usual
@given(tops(failing=True, reacting=True, ending=True), schedules, endings)
def test_a_run_is_ended_at_any_moment_from_inside_and_outside(
    tops: list[Plan], schedule: list[int], ending: Ending
) -> None:
    """TT-10, TT-15, TT-19. Whoever ends what and when: no node is left, nothing hangs, the callbacks fit the end."""
    judge(run(tops, schedule, ending))


options = st.fixed_dictionaries(
    {},
    optional={
        "max_handlers": st.integers(1, 3),
        "keep": st.sampled_from(["all", "failed", "none"]),
        "isolate": st.booleans(),
    },
)
everything = {"failing": True, "ending": True, "isolating": True, "timed": True, "reacting": True}


@usual
@given(tops(**everything), schedules, endings, options)
def test_with_limits_isolation_and_release(
    tops: list[Plan], schedule: list[int], ending: Ending, options: dict[str, Any]
) -> None:
    """TT-12, TT-18, TT-25. Slots, time limits, isolating parents, released subtrees: all at once, whatever fails."""
    finished = run(tops, schedule, ending, **options)
    judge(finished)
    kept = tree_of(finished.commander)[1:]
    if options.get("keep") == "none":
        assert kept == []
    if options.get("keep") == "failed":
        assert all(node.state is NodeState.EXCEPTION or node.children for node in kept)
        failed = [node for node in finished.watch.nodes.values() if node.state is NodeState.EXCEPTION]
        assert {node.path for node in failed} <= {"", *(node.path for node in kept)}


@usual
@given(tops(failing=True), schedules, st.integers(1, 3))
def test_no_more_handlers_run_than_may(tops: list[Plan], schedule: list[int], most: int) -> None:
    """TT-12. At no moment; and a limit changes no path, and no outcome where nothing fails."""
    finished = run(tops, schedule, max_handlers=most)
    judge(finished)
    assert finished.turns.most <= most
    if not any(plan.fails for _, plan in places(tops)):
        assert outcomes(finished) == outcomes(run(tops, schedule))


@usual
@given(tops(**everything), schedules, endings, st.sampled_from(["failed", "none"]))
def test_what_is_kept_changes_nothing_else(tops: list[Plan], schedule: list[int], ending: Ending, keep: str) -> None:
    """TT-2, TT-25. The same stages in the same order with the same states and paths, released or not."""
    first, second = run(tops, schedule, ending), run(tops, schedule, ending, keep=keep)
    assert list(first.watch.ended.items()) == list(second.watch.ended.items())
    assert first.watch.begun == second.watch.begun
    assert first.turns.reactions == second.turns.reactions
    assert (first.given, str(first.error)) == (second.given, str(second.error))


@usual
@given(tops(failing=True, reacting=True, ending=True), schedules, endings)
def test_callbacks_that_fail_their_nodes(tops: list[Plan], schedule: list[int], ending: Ending) -> None:
    """TT-16. With `strict_callbacks` an error in a callback is the node's, and hangs nothing."""
    judge(run(tops, schedule, ending, strict_callbacks=True))


@usual
@given(tops(failing=True, reacting=True, ending=True), schedules, endings)
def test_the_same_run_twice_is_the_same(tops: list[Plan], schedule: list[int], ending: Ending) -> None:
    """TT-2. With the same schedule everything is the same: order of stages, states, callbacks. So it replays."""
    first, second = run(tops, schedule, ending), run(tops, schedule, ending)
    assert list(first.watch.ended.items()) == list(second.watch.ended.items())
    assert first.watch.begun == second.watch.begun
    assert list(first.turns.reactions.items()) == list(second.turns.reactions.items())


@usual
@given(plans(failing=True, ending=True, isolating=True, timed=True, reacting=True))
def test_a_plan_survives_json(plan: Plan) -> None:
    """So that a plan can be the input of a durable workflow."""
    assert Plan.from_plain(json.loads(json.dumps(plan.to_plain()))) == plan
