"""Forks of runs: what is kept is not done again, what is edited is seen, and nothing of a person is taken over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import pytest

from casework import ids
from casework.agents import ModelAnswer, ModelRequest
from casework.app import App
from casework.durable.client import RunClient
from casework.errors import FieldsError, IdempotencyConflictError, NotFoundError, StateError
from casework.examples.loan_underwriting import app as loan_app
from casework.settings import Settings, TemporalSettings
from casework.store import metrics, runs
from tests.integration.durable.conftest import APPLICATION, TENANT, House
from tests.integration.durable.forked_runs import Counted, forked, paths
from tests.integration.durable.sweeping import sweep_now


def counting(app: App, counted: Counted) -> App:
    """The application with its scripts and tools counted."""

    def script(name: str, inner: Callable[[ModelRequest], ModelAnswer]) -> Any:
        def asked(request: ModelRequest) -> ModelAnswer:
            counted.calls[name] += 1
            return inner(request)

        return asked

    scripts = {name: script(name, inner) for name, inner in app.scripts.items()}
    return App(tools=app.tools, manifests=app.manifests, scripts=scripts, policy=app.policy)


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
async def loans(house: House, counted: Counted) -> AsyncIterator[House]:
    """The loan application at work, its model's answers counted."""
    async with house.with_app(counting(loan_app, counted)) as busy:
        yield busy


@pytest.fixture
async def approved(loans: House, counted: Counted) -> UUID:
    """A run that was asked for more, and approved."""
    run_id = await loans.start(APPLICATION)
    await loans.reaches(run_id, "AWAITING_REVIEW")
    await loans.decide(run_id, "more_info", "Is the delinquency settled?")
    await loans.reaches(run_id, "AWAITING_REVIEW", turn=2)
    await loans.decide(run_id, "approve")
    await loans.reaches(run_id, "COMPLETED")
    counted.since()
    return run_id


async def test_a_fork_of_a_later_visit_keeps_all_before_it(loans: House, approved: UUID, counted: Counted) -> None:
    """AW-15, DA-12. Forked at the second turn: the first is taken over with its evidence, a person decides anew."""
    made = await forked(loans, approved, step="underwrite.2")
    assert (made.row.forked_from_run_id, made.row.forked_from_path) == (approved, "underwrite.2")
    row = await loans.reaches(made.row.run_id, "AWAITING_REVIEW")
    assert (row.turn, row.loop_count, row.outcome) == (2, 4, None)
    assert counted.since() == {"underwriter": 1}
    of_source = await loans.steps(approved)
    first = {step.path for step in of_source if step.path.startswith("underwrite.1/")}
    assert set(await paths(loans, row.run_id, taken=True)) == first
    assert await paths(loans, row.run_id, taken=False) == ["underwrite.2/exchange.1/model.1"]
    await loans.decide(row.run_id, "reject", "no")
    ended = await loans.reaches(row.run_id, "COMPLETED")
    assert ended.outcome == "declined"
    assert (await loans.run(approved)).outcome == "approved"
    async with loans.db.transaction() as conn:
        given = await runs.detail(conn, TENANT, row.run_id)
    assert given is not None
    assert [(each.path, each.command) for each in given.decisions] == [("decision.2", "reject")]


async def test_a_fork_inside_a_visit_asks_for_nothing_that_is_recorded(
    loans: House, approved: UUID, counted: Counted
) -> None:
    """AW-15. Forked at the second model call of the first turn: the first call and its two tools are not done again."""
    made = await forked(loans, approved, step="underwrite.1/exchange.2/model.1")
    assert (made.fork.kept, made.fork.anew) == (3, "")
    row = await loans.reaches(made.row.run_id, "AWAITING_REVIEW")
    assert set(await paths(loans, row.run_id, taken=True)) == {
        "underwrite.1/exchange.1/model.1",
        "underwrite.1/exchange.1/credit_check.1",
        "underwrite.1/exchange.1/income_verification.1",
    }
    assert counted.since() == {"underwriter": 3}
    assert row.recommendation == (await _first_recommendation(loans, approved))
    async with loans.db.transaction() as conn:
        used = await metrics.of_run(conn, TENANT, row.run_id)
        attempts = await runs.attempts(conn, TENANT, row.run_id)
    assert (used.model_calls, used.tool_calls, used.attempts_completed) == (3, 2, len(attempts))


async def _first_recommendation(house: House, run_id: UUID) -> Any:
    steps = {step.path: step for step in await house.steps(run_id)}
    return steps["underwrite.1/exchange.4/model.1"].result["output"]


async def test_a_fork_at_a_tool_does_that_tool_again(loans: House, approved: UUID, counted: Counted) -> None:
    """AW-15. The answer that asked for it is kept, and what was asked beside it before; it itself is done again."""
    made = await forked(loans, approved, step="underwrite.1/exchange.1/income_verification.1")
    row = await loans.reaches(made.row.run_id, "AWAITING_REVIEW")
    assert set(await paths(loans, row.run_id, taken=True)) == {
        "underwrite.1/exchange.1/model.1",
        "underwrite.1/exchange.1/credit_check.1",
    }
    assert "underwrite.1/exchange.1/income_verification.1" in await paths(loans, row.run_id, taken=False)
    assert counted.since() == {"underwriter": 3}


async def test_a_fork_of_an_ended_run_without_a_step_asks_the_person_again(loans: House, approved: UUID) -> None:
    """AW-14, AW-15. A terminal state never changes; to begin again where a run last was is a new run."""
    made = await forked(loans, approved)
    assert made.fork.visit == "decision.2"
    row = await loans.reaches(made.row.run_id, "AWAITING_REVIEW")
    assert (row.recommendation, row.turn) == ((await loans.run(approved)).recommendation, 2)
    await loans.decide(row.run_id, "approve")
    assert (await loans.reaches(row.run_id, "COMPLETED")).outcome == "approved"


async def test_the_input_of_a_fork_can_be_edited(loans: House, approved: UUID, counted: Counted) -> None:
    """AW-15. With edits the visit begins anew as a whole, and the answer says so."""
    made = await forked(
        loans,
        approved,
        step="underwrite.1/exchange.2/model.1",
        context={"input": {**APPLICATION, "applicant_id": "APP-1002"}},
    )
    assert made.fork.kept == 0
    assert "begins anew" in made.fork.anew
    row = await loans.reaches(made.row.run_id, "AWAITING_REVIEW")
    assert row.request == {**APPLICATION, "applicant_id": "APP-1002"}
    assert counted.since() == {"underwriter": 4}
    steps = {step.path: step for step in await loans.steps(row.run_id)}
    assert steps["underwrite.1/exchange.1/credit_check.1"].arguments == {"applicant_id": "APP-1002"}


async def test_an_output_can_be_edited_before_a_person_sees_it(loans: House, approved: UUID) -> None:
    """AW-15. The person is asked about the edited recommendation."""
    other = {"recommendation": "decline", "rationale": "edited by hand"}
    made = await forked(loans, approved, step="decision.1", context={"recommendation": other})
    row = await loans.reaches(made.row.run_id, "AWAITING_REVIEW")
    assert row.recommendation == other
    assert (await loans.review(row.run_id)).recommendation == other
    async with loans.db.transaction() as conn:
        [output] = await runs.context(conn, TENANT, row.run_id)
    assert (output.key, output.value, output.path) == ("recommendation", other, "")


async def test_the_same_key_is_the_same_fork(loans: House, approved: UUID) -> None:
    """AW-15. And another body under it is refused."""
    first = await forked(loans, approved, "k1", step="decision.1")
    second = await forked(loans, approved, "k1", step="decision.1")
    assert (first.row.run_id, first.fork, second.created) == (second.row.run_id, second.fork, False)
    with pytest.raises(IdempotencyConflictError):
        await forked(loans, approved, "k1", step="decision.2")


async def test_a_fork_can_be_forked(loans: House, approved: UUID, counted: Counted) -> None:
    """AW-15. At a step of its own; one that it took over is forked where it was done."""
    first = await forked(loans, approved, step="underwrite.2")
    await loans.reaches(first.row.run_id, "AWAITING_REVIEW")
    counted.since()
    second = await forked(loans, first.row.run_id, step="decision.2")
    row = await loans.reaches(second.row.run_id, "AWAITING_REVIEW")
    assert counted.since() == {}
    assert (row.turn, row.loop_count) == (2, 4)
    assert ids.review_id(row.run_id, "decision.2") == (await loans.review(row.run_id)).review_id
    origins = {step.path.partition("/")[0]: step.taken_from for step in await loans.steps(row.run_id)}
    assert origins == {"underwrite.1": approved, "underwrite.2": first.row.run_id}
    with pytest.raises(StateError, match=f"took it over from run {approved}"):
        await forked(loans, first.row.run_id, step="underwrite.1/exchange.1/model.1")


async def test_a_fork_that_nobody_started_is_started_by_the_sweep(loans: House, approved: UUID) -> None:
    """AW-15, DA-8. Everything it begins with is in its rows."""
    queue = loans.settings.temporal.task_queue
    nowhere = await RunClient.open(Settings(temporal=TemporalSettings(address="127.0.0.1:9", task_queue=queue)))
    made = await forked(loans, approved, step="underwrite.2", run_client=nowhere)
    assert (made.created, (await loans.run(made.row.run_id)).status) == (True, "PENDING")
    assert (await sweep_now(loans)).started == 1
    row = await loans.reaches(made.row.run_id, "AWAITING_REVIEW")
    assert (row.turn, await paths(loans, row.run_id, taken=False)) == (2, ["underwrite.2/exchange.1/model.1"])
    told = {event.kind: event.data for event in await loans.events(row.run_id)}
    assert told["agent.run_forked"]["run_id"] == str(approved)


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"step": "underwrite.3"}, NotFoundError, "has no step 'underwrite.3'. Did you mean 'underwrite.2'"),
    ({"context": {"recomendation": 1}}, FieldsError, "recomendation"),
    ({"context": {"review": {}}}, FieldsError, "review"),
    ({"context": {"input": {"amount": -1}}}, FieldsError, "context.input.amount"),
    ({"context": {"recommendation": {"recommendation": "maybe"}}}, FieldsError, "context.recommendation"),
    ({"workflow_version": 99}, FieldsError, "has no version 99"),
    ({"model": "nobody:at-all"}, FieldsError, "nobody"),
]


async def test_what_does_not_hold_is_refused_and_starts_nothing(loans: House, approved: UUID) -> None:
    """AW-15. Each refusal names what is wrong."""
    for body, kind, words in REFUSED:
        with pytest.raises(kind, match=words):
            await forked(loans, approved, **body)
    async with loans.db.transaction() as conn:
        page = await runs.list_page(conn, TENANT)
    assert [row.run_id for row in page.rows] == [approved]
