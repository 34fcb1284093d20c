"""Traces of segments: a visit in one has the spans that it has alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from temporalio.client import WorkflowFailureError

from casework.durable import contracts
from casework.errors import FatalError, RetryableError, ToldError
from tests.integration.durable.chains import Act, loop_app
from tests.integration.durable.collector import Collector, Seen, collecting
from tests.integration.durable.conftest import House
from tests.integration.durable.test_segments import RESCUED, activities, started, started_plain
from tests.integration.durable.test_traces import of_run, traced


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


def rescued(name: str, calls: int) -> None:
    """Trouble once, and a refusal."""
    if (name, calls) == ("first", 2):
        raise RetryableError("busy")
    if (name, calls) == ("second", 1):
        raise ToldError("not today")


def over(name: str, calls: int) -> None:
    """The end."""
    if (name, calls) == ("second", 2):
        raise FatalError("it is over")


@pytest.mark.parametrize(("act", "end"), [(rescued, "COMPLETED"), (over, "FAILED")])
async def test_the_spans_are_those_of_the_nodes_alone(
    house: House, collector: Collector, tmp_path: Path, act: Act, end: str
) -> None:
    """AW-11. Each visit, attempt and act has its span, at its path and below the same one, whoever made it."""
    shapes, found = [], []
    for number, start in enumerate((started, started_plain)):
        at = tmp_path / str(number)
        at.mkdir()
        house.app = loop_app(at, act, edges=RESCUED)
        await house.open()
        async with traced(house, collector.url):
            run_id = await start(house, 3)
            await house.reaches(run_id, end)
            with suppress(WorkflowFailureError):  # the run's own span comes when the engine has its end
                await house.client.get_workflow_handle(str(run_id)).result()
        assert (contracts.RUN_SEGMENT in await activities(house, run_id)) == (number == 0)
        shapes.append(shape(collector, run_id))
        found.append(of_run(collector, run_id))
    assert shapes[0] == shapes[1]
    for spans in found:
        assert len({span.id for span in spans}) == len(spans), "a span came twice"
        lie_within(spans)


def shape(collector: Collector, run_id: UUID) -> Counter[Any]:
    """What the spans of a run say, but for ids and times; the writes of its outbox are others in a segment."""
    spans = of_run(collector, run_id)
    known = {span.id: span for span in spans}
    made: Counter[Any] = Counter()
    for span in spans:
        above = known.get(span.parent)
        said = {key: value for key, value in span.attributes.items() if key not in UNLIKE}
        if span.name != "project":
            made[span.name, span.kind, span.failed, above and (above.name, above.path), str(sorted(said.items()))] += 1
    return made


UNLIKE = ("casework.run_id", "casework.step_id", "casework.workflow_version", "temporal.attempt")


def lie_within(spans: list[Seen]) -> None:
    """Attempts within their visits; the times of visits come from texts, which have microseconds."""
    visits = {span.id: span for span in spans if span.name.startswith("visit ")}
    attempts = [span for span in spans if span.name.startswith("tool ")]
    assert attempts
    for span in attempts:
        visit = visits[span.parent]
        assert visit.start - 1000 <= span.start <= span.end
        assert visit.start <= visit.end
