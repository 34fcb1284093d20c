"""The walk of a tray: what is due, what results do, and that it always ends, over random lines."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.process.lines import Join, Split, plain, process

from casework.errors import StateError
from casework.process.lines import END, FINALIZER, Line, Shape
from casework.process.walk import (
    MAX_VISITS,
    Again,
    Entry,
    GiveUp,
    Left,
    Parted,
    Passed,
    Result,
    TrayState,
    Waits,
    Work,
    advance,
    due,
    enter,
    give_up,
)

TASKS = [plain(name) for name in "abc"]
LINE = Line(process(*TASKS)).shape
SPLIT = Line(process(TASKS[0], Split, TASKS[1], Join, TASKS[2])).shape
ONE, TWO, THREE, FOUR = (UUID(int=number) for number in (1, 2, 3, 4))


def on(line: Shape, *uuids: UUID) -> TrayState:
    return enter(line, [Entry(uuid, line.stations[1]) for uuid in uuids])


def pass_all(line: Shape, state: TrayState) -> TrayState:
    work = due(line, state)
    assert isinstance(work, Work)
    return advance(line, state, {uuid: Passed(line.behind(work.station)) for uuid in work.transactions})


def test_a_tray_travels_together() -> None:
    """One work for a task and a tray: all its Transactions, station after station, to the end."""
    state, seen = on(LINE, ONE, TWO), []
    while work := due(LINE, state):
        assert isinstance(work, Work)
        seen.append((work.path, work.attempt, work.transactions))
        state = pass_all(LINE, state)
    assert seen == [(f"{name}.1", 1, (ONE, TWO)) for name in ("a", "b", "c", "finalizer")]
    assert {each.at for each in state.travellers} == {END}


def test_who_goes_elsewhere_or_back_goes_alone() -> None:
    """One goes back to `a`, on its second visit, and one ahead to `c`: the earliest station is due first."""
    state = advance(LINE, pass_all(LINE, on(LINE, ONE, TWO)), {ONE: Passed("a"), TWO: Passed("c")})
    assert due(LINE, state) == Work("a", 2, 1, (ONE,))
    state = pass_all(LINE, pass_all(LINE, state))
    assert due(LINE, state) == Work("c", 1, 1, (ONE, TWO))


def test_what_failed_is_at_no_further_station() -> None:
    """It leaves its line at once, and neither a task nor the Finalizer sees it again; the others go on."""
    state = advance(LINE, on(LINE, ONE, TWO), {ONE: Left("no amount"), TWO: Passed("b")})
    while work := due(LINE, state):
        assert isinstance(work, Work)
        assert work.transactions == (TWO,)
        state = pass_all(LINE, state)
    one = state.of(ONE)
    assert one is not None
    assert (one.at, one.left) == (END, "no amount")


def test_another_attempt_is_the_same_visit() -> None:
    """A retry is due at the same path with the next attempt, and after the others' first."""
    state = advance(LINE, on(LINE, ONE, TWO), {ONE: Again(), TWO: Passed("b")})
    assert due(LINE, state) == Work("a", 1, 2, (ONE,))
    assert due(LINE, pass_all(LINE, state)) == Work("b", 1, 1, (ONE, TWO))


def test_fail_fast_takes_the_tray() -> None:
    """All that are not through are given up, each with the reason."""
    state = advance(LINE, on(LINE, ONE, TWO, THREE), {ONE: Left("bad", "all"), TWO: Passed("b"), THREE: Passed("end")})
    pending = due(LINE, state)
    assert isinstance(pending, GiveUp)
    assert list(pending.reasons) == [TWO]
    assert pending.reasons[TWO].endswith("bad")
    assert due(LINE, advance(LINE, state, {TWO: Left("with it")})) is None


def test_a_parent_waits_at_the_join_for_its_children() -> None:
    """Children stay in the tray and go on from the split; the parent is due at the join when all have passed it."""
    state = pass_all(SPLIT, on(SPLIT, ONE))
    state = advance(SPLIT, state, {ONE: Parted("b", (TWO, THREE))})
    assert due(SPLIT, state) == Work("b", 1, 1, (TWO, THREE))
    state = advance(SPLIT, state, {TWO: Passed("b"), THREE: Passed("join")})
    assert due(SPLIT, state) == Work("b", 2, 1, (TWO,))
    state = pass_all(SPLIT, state)
    assert due(SPLIT, state) == Work("join", 1, 1, (TWO, THREE))
    state = pass_all(SPLIT, state)
    assert due(SPLIT, state) == Work("join", 1, 1, (ONE,))
    assert due(SPLIT, pass_all(SPLIT, state)) == Work("c", 1, 1, (ONE, TWO, THREE))


def test_a_failed_child_frees_the_parent_and_may_take_its_siblings() -> None:
    """The parent does not wait for who cannot come any more; siblings of a failed child leave with it if so told."""
    state = advance(SPLIT, pass_all(SPLIT, on(SPLIT, ONE)), {ONE: Parted("b", (TWO, THREE))})
    alone = advance(SPLIT, state, {TWO: Left("bad"), THREE: Passed("end")})
    assert due(SPLIT, alone) == Work("join", 1, 1, (ONE,))
    together = advance(SPLIT, state, {TWO: Left("bad", "siblings"), THREE: Passed("join")})
    pending = due(SPLIT, together)
    assert isinstance(pending, GiveUp)
    assert list(pending.reasons) == [THREE]


def test_a_split_into_nothing_goes_on_alone() -> None:
    """No children: nobody waits."""
    state = advance(SPLIT, pass_all(SPLIT, on(SPLIT, ONE)), {ONE: Parted("b", ())})
    assert due(SPLIT, state) == Work("b", 1, 1, (ONE,))


def test_tasks_are_passed_over() -> None:
    """A Transaction that is to skip stands at the task at which it goes on; an unknown one is given up."""
    state = enter(LINE, [Entry(ONE, "a", skip_until="c"), Entry(TWO, "a", skip_until="elsewhere")])
    pending = due(LINE, state)
    assert isinstance(pending, GiveUp)
    assert "'elsewhere', which process 'processing' does not have" in pending.reasons[TWO]
    assert due(LINE, advance(LINE, state, {TWO: Left("")})) == Work("c", 1, 1, (ONE,))


def test_rules_that_lead_back_for_ever_end() -> None:
    """A Transaction that has been at a task a hundred times is given up, with that reason."""
    state, count = on(LINE, ONE), 0
    while isinstance(due(LINE, state), Work):
        state = advance(LINE, state, {ONE: Passed("a")})
        count += 1
    pending = due(LINE, state)
    assert isinstance(pending, GiveUp)
    assert (count, pending.reasons[ONE]) == (MAX_VISITS, f"it has been at task 'a' {MAX_VISITS} times")


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ({}, "Give one for each"),
        ({ONE: Passed("b"), THREE: Passed("b")}, "Give one for each"),
        ({ONE: Passed("z"), TWO: Passed("b")}, "has no station 'z'"),
        ({ONE: Passed("monitor"), TWO: Passed("b")}, "has no station 'monitor'"),
        ({ONE: Parted("b", (TWO,)), TWO: Passed("b")}, "an id of its own"),
    ],
)
def test_results_answer_what_is_due(results: dict[UUID, Result], said: str) -> None:
    """A driver that mixes something up is told."""
    with pytest.raises(StateError, match=said):
        advance(LINE, on(LINE, ONE, TWO), results)
    with pytest.raises(StateError, match="twice in one tray"):
        on(LINE, ONE, ONE)


@st.composite
def lines(draw: st.DrawFn) -> Shape:
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1, max_size=5))
    tasks: list[Any] = [plain(name) for name in names]
    if draw(st.booleans()):
        tasks.insert(draw(st.integers(0, len(tasks))), Split)
    if draw(st.booleans()):
        tasks.insert(draw(st.integers(0, len(tasks))), Join)
    return Line(process(*tasks)).shape


@given(lines(), st.integers(1, 4), st.data())
def test_every_walk_ends_and_loses_nobody(line: Shape, count: int, data: st.DataObject) -> None:
    """Over random lines, routes, splits, retries and failures: who has failed is at no station again, no visit of a
    task is done twice for a Transaction, and at the end each is through or has its reason."""
    state = on(line, *(UUID(int=number) for number in range(1, count + 1)))
    done: set[tuple[UUID, str, int]] = set()
    left: set[UUID] = set()
    number = count
    for step in range(4000):
        pending = due(line, state)
        if pending is None:
            break
        results: dict[UUID, Result] = {}
        for uuid in pending.transactions if isinstance(pending, Work) else pending.reasons:
            assert uuid not in left
            if isinstance(pending, GiveUp):
                results[uuid] = Left(pending.reasons[uuid])
                left.add(uuid)
                continue
            assert (uuid, pending.path, pending.attempt) not in done
            if step < 40 and data.draw(st.integers(0, 9)) == 0:
                results[uuid] = Waits()
                continue
            done.add((uuid, pending.path, pending.attempt))
            ahead = [
                name for name in line.stations[1:] if step < 40 or line.places[name] > line.places[pending.station]
            ]
            choice = data.draw(st.sampled_from(["pass"] * 5 + ["again", "left", "siblings", "all"]))
            if choice == "again" and step < 40:
                results[uuid] = Again()
            elif choice in ("left", "siblings", "all"):
                results[uuid] = Left("bad", "none" if choice == "left" else choice)  # type: ignore[arg-type]
                left.add(uuid)
            elif pending.station == "split" and number < 30:
                children = tuple(UUID(int=number + each) for each in range(1, data.draw(st.integers(0, 3)) + 1))
                number += len(children)
                results[uuid] = Parted(data.draw(st.sampled_from(ahead)), children)
            else:
                results[uuid] = Passed(data.draw(st.sampled_from(ahead)))
        state = advance(line, state, results)
    assert due(line, state) is None
    assert len(state.travellers) == number
    assert all(each.at == END for each in state.travellers)
    assert {each.uuid for each in state.travellers if each.left} == left


def test_who_waits_is_due_behind_all_others() -> None:
    """BP-8. One waits at `a`; the other goes on to the end, and then the first is due there again, and again."""
    state = advance(LINE, on(LINE, ONE, TWO), {ONE: Waits(), TWO: Passed("b")})
    for name in ("b", "c", "finalizer"):
        assert due(LINE, state) == Work(name, 1, 1, (TWO,))
        state = pass_all(LINE, state)
    for _ in range(2):
        assert due(LINE, state) == Work("a", 1, 1, (ONE,), waited=True)
        state = advance(LINE, state, {ONE: Waits()})
    state = advance(LINE, state, {ONE: Passed("b")})
    assert due(LINE, state) == Work("b", 1, 1, (ONE,))


def test_what_is_given_up_from_outside_is_due_at_once() -> None:
    """BP-10. Of two on the line and one behind it, those that are on it are given up for their reasons."""
    state = advance(LINE, on(LINE, ONE, TWO), {ONE: Passed("end"), TWO: Passed("b")})
    given_up = give_up(state, {ONE: "late", TWO: "lost"})
    assert due(LINE, given_up) == GiveUp({TWO: "lost"})


def test_a_line_without_finalizer_ends_behind_its_last_task() -> None:
    """A Finalizer is no must: without one the status stays as it is."""
    line = Line(process(*TASKS, finalizer=None)).shape
    assert FINALIZER not in line.stations
    state = on(line, ONE)
    for _ in TASKS:
        state = pass_all(line, state)
    assert due(line, state) is None
