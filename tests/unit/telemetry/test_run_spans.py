"""The spans above the attempts, told from activities and from the events that they carry."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from casework.durable.tracing.run_spans import RunFacts, RunSpans
from casework.telemetry.identity import Place
from casework.telemetry.records import SpanRecord

RUN = UUID("6f2d2f0e-5b0c-4d39-9f0a-0c5f4b7f3a11")
FACTS = RunFacts(RUN, "default", "loan", 3, Place(RUN.int, 1))


def event(path: str, kind: str, second: int) -> dict[str, Any]:
    return {"entry": "event", "path": path, "kind": f"agent.{kind}", "at": f"2026-01-01T00:00:{second:02}.000000+00:00"}


def spans() -> tuple[RunSpans, list[SpanRecord]]:
    made: list[SpanRecord] = []
    return RunSpans(FACTS, made.append), made


def test_a_visit_lasts_from_its_first_event_to_its_last() -> None:
    run, made = spans()
    run.carried([event("weigh.1", "node_started", 1)])
    run.carried([event("weigh.1", "node_completed", 4), event("heavy.1", "node_started", 4)])
    [visit] = made
    assert (visit.name, visit.attributes["casework.path"]) == ("visit weigh", "weigh.1")
    assert visit.end - visit.start == 3_000_000_000
    assert visit.parent == FACTS.place("")


def test_entries_that_travel_again_make_no_span_again() -> None:
    run, made = spans()
    entries = [event("a.1", "node_started", 1), event("a.1", "node_failed", 2)]
    run.carried(entries)
    run.carried(entries)
    assert [(span.name, span.error) for span in made] == [("visit a", "VisitFailed")]


def test_an_exchange_lasts_from_its_first_activity_to_its_last() -> None:
    run, made = spans()
    run.carried([event("a.1", "node_started", 1)])
    run.began("a.1/exchange.1/model.1", 10)
    run.ended("a.1/exchange.1/model.1", 20)
    run.began("a.1/exchange.1/look.1", 21)
    run.began("a.1/exchange.1/look.2", 21)
    run.ended("a.1/exchange.1/look.2", 30)
    run.ended("a.1/exchange.1/look.1", 40)
    assert not made
    run.began("a.1/exchange.2/model.1", 41)
    [exchange] = made
    assert (exchange.name, exchange.start, exchange.end) == ("exchange", 10, 40)
    assert exchange.parent == FACTS.place("a.1")


def test_what_lies_deeper_has_every_span_between() -> None:
    run, made = spans()
    run.began("a.1/b.1/c.1/d.1", 10)
    run.ended("a.1/b.1/c.1/d.1", 20)
    run.over(30, start=0, parent=None, state="FAILED", error="x")
    assert [span.attributes["casework.path"] for span in made] == ["a.1/b.1", "a.1/b.1/c.1", ""]
    assert made[-1].error == "x"


def test_the_end_of_a_run_ends_what_is_open() -> None:
    run, made = spans()
    run.carried([event("decision.1", "node_started", 1)])
    run.over(99_000_000_000 * 10**9, start=0, parent=None, state="CANCELLED", error=None)
    assert [span.name for span in made] == ["visit decision", "run"]


def test_a_decision_is_linked_to_where_it_came_from() -> None:
    run, made = spans()
    run.sent("d1", Place(5, 6))
    entry = {"entry": "decision", "path": "decision.1", "decision_id": "d1", "command": "approve", "accepted": True}
    run.carried([{**entry, "at": "2026-01-01T00:00:00.000000+00:00", "reviewer": "rita", "reason": "private"}])
    [decision] = made
    assert decision.links == (Place(5, 6),)
    assert decision.parent == FACTS.place("decision.1")
    assert not {"rita", "private"} & set(decision.attributes.values())


def test_a_job_below_a_job_has_one_span() -> None:
    """In a free tree Jobs lie below Jobs; what is told by events is not told again as what lies between."""
    run, made = spans()
    run.carried([event("talk.1", "node_started", 1), event("talk.1/round.1", "node_started", 1)])
    run.began("talk.1/round.1/one.1/model.1", 10)
    run.ended("talk.1/round.1/one.1/model.1", 20)
    run.carried([event("talk.1/round.1", "node_completed", 3), event("talk.1", "node_completed", 4)])
    run.over(40, start=0, parent=None, state="COMPLETED", error=None)
    paths = [str(span.attributes["casework.path"]) for span in made if span.name != "run"]
    assert paths == ["talk.1/round.1/one.1", "talk.1/round.1", "talk.1"]
    assert len({span.place for span in made}) == len(made)
