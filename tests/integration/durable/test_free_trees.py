"""Free trees as runs: the same ledger, transcript, events and row as runs of a graph have."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from temporalio.client import WorkflowFailureError

from casework.app import App
from casework.durable.contracts import CancelRequest, Decision
from casework.durable.publish import publish
from casework.store import messages, runs
from casework.store.rows import RunRow
from tests.integration.durable import free_trees
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.free_tree_app import app
from tests.integration.durable.sweeping import sweep_now
from tests.integration.durable.tree_notes import NOTES


async def result_of(house: House, run_id: UUID) -> Any:
    async with house.db.transaction() as conn:
        return {row.key: row.value for row in await runs.context(conn, TENANT, run_id)}["result"]


async def done(house: House, name: str, given: dict[str, Any] | None = None) -> tuple[UUID, Any]:
    """A run of the tree, COMPLETED, and its result."""
    run_id = await house.start(given or {}, name)
    row = await house.reaches(run_id, "COMPLETED", deadline_s=60)
    assert (row.outcome, row.failure, row.turn) == (None, None, 1)
    return run_id, await result_of(house, run_id)


async def failed(house: House, name: str, given: dict[str, Any] | None = None) -> tuple[UUID, RunRow]:
    run_id = await house.start(given or {}, name)
    return run_id, await house.reaches(run_id, "FAILED", deadline_s=60)


async def transcript(house: House, run_id: UUID) -> list[tuple[str, str, str]]:
    async with house.db.transaction() as conn:
        return [(row.agent, row.role, row.content) for row in await messages.page(conn, TENANT, run_id)]


async def test_steps_messages_and_events_of_a_tree(house: House) -> None:
    """TT-23, DA-29. Two agents asked at the same time, each with a transcript of its own; paths are the tree's."""
    async with house.with_app(app) as busy:
        run_id, result = await done(busy, "rounds", {"rounds": 2})
        assert result == {"last": ["ada 2: round 1", "bob 2: round 1"], "weighed": {"grams": 2000}}
        steps = [(step.path, step.kind, step.state, step.node, step.attempt) for step in await busy.steps(run_id)]
        asked = [f"rounds.1/Round.{n}/{name}.1/model.1" for n in (1, 2) for name in ("ada", "bob")]
        assert sorted(steps) == [
            *((path, "model", "COMPLETED", "Round", 1) for path in asked),
            ("rounds.1/weigh.1", "tool", "COMPLETED", "rounds", 1),
        ]
        said = await transcript(busy, run_id)
        assert [each for each in said if each[0] == "bob"] == [
            ("bob", "user", "round 2"),
            ("bob", "assistant", "bob 1: round 2"),
            ("bob", "user", "round 1"),
            ("bob", "assistant", "bob 2: round 1"),
        ]
        kinds = Counter(event.kind for event in await busy.events(run_id))
        assert (kinds["agent.node_started"], kinds["agent.node_completed"], kinds["agent.model_answered"]) == (3, 3, 4)
        history = await busy.client.get_workflow_handle(str(run_id)).describe()
        assert history.workflow_type == "casework.tree"


async def test_a_job_class_is_a_tree(house: House) -> None:
    """TT-6. Under the tree's name, as a function is."""
    async with house.with_app(app) as busy:
        run_id, result = await done(busy, "ordered", {"words": "hello"})
        assert result == "ada 1: hello"
        assert [step.path for step in await busy.steps(run_id)] == ["ordered.1/model.1"]


async def test_what_a_model_would_be_told_is_a_named_error(house: House) -> None:
    """DA-18. A refusal of a tool, wrong arguments, a model that refuses or asks for tools: the tree may go on.

    Arguments are data: nothing in them is rendered.
    """
    do = [
        ("weigh", {"weight": -1}), ("weigh", {"weight": "{{ input.do }}"}), ("ada", "refuse"), ("ada", "use tools"),
        ("ada", "well?"), ("length", {"text": "{{ 7 | times: 7 }}"}),
    ]  # fmt: skip
    async with house.with_app(app) as busy:
        run_id, made = await done(busy, "errand", {"do": do})
        assert made[0] == "ToldError: weigh: a weight cannot be negative."
        assert made[1].startswith("ToldError: ")
        assert made[2] == "GivenUpError: errand.1/model.1: the account is closed"
        assert made[3].startswith("GivenUpError: errand.1/model.2: the model asked for tools (weigh)")
        assert made[4:] == ["ada 3: well?", len("{{ 7 | times: 7 }}")]
        said = await transcript(busy, run_id)
        roles = ["user", "note", "user", "assistant", "tool", "tool", "user", "assistant"]
        assert [role for _, role, _ in said] == roles
        states = {step.path: step.state for step in await busy.steps(run_id)}
        assert (states["errand.1/weigh.1"], states["errand.1/model.1"]) == ("FAILED", "FAILED")


async def test_what_is_refused_at_the_call(house: House) -> None:
    """Misuse of the context is an error at once, and costs nothing."""
    async with house.with_app(app) as busy:
        run_id, made = await done(busy, "misuse")
        assert made == [
            "NotFoundError", "InputError", "UnserialisableError", "InputError", "InputError", "UnserialisableError",
        ]  # fmt: skip
        assert await busy.steps(run_id) == []


async def test_an_agent_is_asked_by_several_parts_of_a_tree_at_once(house: House) -> None:
    """DA-28. Asks of one agent wait for each other; no prompt has a hole."""
    async with house.with_app(app) as busy:
        run_id, made = await done(busy, "many", {"asks": 12})
        assert made == [f"{('ada', 'bob')[n % 2]} {n // 2 + 1}: {n}" for n in range(12)]
        found = await busy.client.get_workflow_handle(str(run_id)).describe()
        assert found.raw_description.execution_config.default_workflow_task_timeout.ToSeconds() == 20


async def test_more_than_a_worker_may_send_at_once(house: House) -> None:
    """DA-22. Calls whose arguments are together larger than the engine takes in one answer wait for their turn."""
    async with house.with_app(app) as busy:
        _, made = await done(busy, "bulk", {"calls": 40, "length": 200_000})
        assert made == sum(200_000 + n for n in range(40))


async def test_an_ask_that_is_ended_in_flight_leaves_no_hole(house: House) -> None:
    """TT-19. Its step is closed, its answer no longer taken, and the agent can be asked again."""
    async with house.with_app(app) as busy:
        run_id, made = await done(busy, "ended-ask")
        assert made == ["TERMINATED", "bob 2: again"]
        states = {step.path: (step.state, step.error) for step in await busy.steps(run_id)}
        assert states["ended-ask.1/one_ask.1/model.1"] == ("FAILED", "ended by its tree or its run")


async def test_a_time_limit_counts_by_the_engines_clock(house: House) -> None:
    """TT-12, DA-16. The ask in flight is ended with its node, and its agent can be asked again."""
    async with house.with_app(app) as busy:
        run_id, made = await done(busy, "in-time")
        assert made == ["TimeLimitError", "bob 2: again"]
        assert {step.path: step.state for step in await busy.steps(run_id)}["in-time.1/one_ask.1/model.1"] == "FAILED"


async def test_calls_from_other_threads_are_refused_by_name(house: House) -> None:
    """TT-11. A durable workflow has no other threads, and its loop takes no calls from any."""
    async with house.with_app(app) as busy:
        assert (await done(busy, "threads"))[1] == "ThreadsRefusedError"


async def test_a_run_that_is_cancelled_with_a_call_in_flight(house: House) -> None:
    """TT-19, DA-31. The step has an end too."""
    async with house.with_app(app) as busy:
        run_id = await busy.start({}, "waiting")

        async def weighed() -> bool:
            states = {step.path: step.state for step in await busy.steps(run_id)}
            return states.get("waiting.1/weigh.1") == "COMPLETED" and "waiting.1/one_ask.1/model.1" in states

        await eventually(weighed, "both calls are under way")
        await busy.runs.cancel(str(run_id), CancelRequest("olga", "enough"))
        await busy.reaches(run_id, "CANCELLED")
        states = {step.path: step.state for step in await busy.steps(run_id)}
        assert states == {"waiting.1/weigh.1": "COMPLETED", "waiting.1/one_ask.1/model.1": "FAILED"}


REFUSES = '"ada", "refuse"'


def place_of(words: str) -> str:
    """The line of the trees' module that holds `words`, as a failure names it."""
    lines = Path(free_trees.__file__).read_text(encoding="utf-8").splitlines()
    return f"free_trees.py:{next(n for n, line in enumerate(lines, 1) if words in line)}"


def told_in_log(caplog: pytest.LogCaptureFixture, *words: str) -> int:
    return sum(all(word in record.getMessage() for word in words) for record in caplog.records)


async def test_the_root_error_is_told_with_its_path(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """DA-19, TT-18. The run's failure is the error itself, and where it arose: path, and line of the user's code."""
    async with house.with_app(app) as busy:
        run_id, row = await failed(busy, "failing")
        assert row.failure == f"failing.1/Deep.1: LookupError: no such thing ({place_of('no such thing')} in fail)"
        assert told_in_log(caplog, f"'failing' of run {run_id}", "LookupError: no such thing", "free_trees.py") == 1
        kinds = [(event.path, event.kind) for event in await busy.events(run_id)]
        assert ("failing.1/Deep.1", "agent.node_failed") in kinds
        with pytest.raises(WorkflowFailureError):
            await busy.client.get_workflow_handle(str(run_id)).result()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("stubborn", "stubborn.1/unheard_of.1: There is no tool 'unheard_of'"),
        ("clock", "time.time.__call__ is refused in the code of a free tree. Use a tool"),
        ("dice", "in dice)"),
        ("reader", "in reader)"),
        ("in-thread", "run_in_executor (a thread, a process or a connection) is refused in the code of a free tree"),
        ("in-thread", "in in_thread)"),
        ("unanswered", f"unanswered.1/model.1: the account is closed ({place_of(REFUSES)} in"),
        ("own-cancel", "CancelledError"),
        ("weird", "the result of free tree 'weird' cannot be stored"),
        ("endless", "a free tree is stopped at 60 events"),
    ],
)
async def test_what_ends_a_tree_failed(house: House, name: str, told: str) -> None:
    """DA-19, DA-20. A fault that nobody may pass over, chance and clocks, a result that is none, a history too long."""
    async with house.with_app(app) as busy:
        _, row = await failed(busy, name)
        assert told in str(row.failure)
        assert len(str(row.failure)) < 1000


async def test_a_history_that_is_too_long_is_an_event_too(house: House) -> None:
    """DA-20. A free tree cannot roll over: it stops before the limit, saying so; its steps stay."""
    async with house.with_app(app) as busy:
        run_id, _ = await failed(busy, "endless")
        assert "agent.history_limit" in {event.kind for event in await busy.events(run_id)}
        assert len(await busy.steps(run_id)) > 5
        history = await busy.client.get_workflow_handle(str(run_id)).fetch_history()
        assert len(history.events) < 100


async def test_jobs_beyond_a_bound_are_counted_and_not_told(house: House) -> None:
    """TT-14. Any number of Jobs runs; so many are events."""
    async with house.with_app(app) as busy:
        run_id, made = await done(busy, "jobs", {"jobs": 1600})
        assert made == 1600
        async with busy.db.transaction() as conn:
            last = (await runs.events(conn, TENANT, run_id, after_seq=2450))[-2:]
        assert [event.kind for event in last] == ["agent.nodes_untold", "agent.run_completed"]
        # The top's start, starts and ends of 1,249, and the start of one more are 2,500.
        assert last[0].data == {"jobs": 1600 - 1249 + 1, "told": 2500}


async def test_a_failing_callback_is_told_in_the_log(house: House) -> None:
    """TT-16. It changes nothing."""
    async with house.with_app(app) as busy:
        run_id, made = await done(busy, "raises")
        assert made == "done"
        async with busy.db.transaction() as conn:
            [line] = await runs.logs(conn, TENANT, run_id)
        assert (line.level, line.message) == ("ERROR", "at_job_end: division by zero")


async def test_a_new_run_takes_the_newest_version(house: House) -> None:
    """AW-2. Several versions are registered side by side; what is unknown to the worker ends its run, by name."""
    async with house.with_app(app) as busy:
        assert (await done(busy, "versions", {"word": "more"}))[1] == "two more"
    await publish(app, house.db)
    run_id = await house.start({"word": "more"}, "versions")
    older = House(house.dsn, house.db, house.client, house.settings, App(trees=[free_trees.first_version]))
    async with older.worker():
        row = await older.reaches(run_id, "FAILED")
    assert "no free tree 'versions' version 2; it has: versions version 1" in str(row.failure)


@pytest.mark.parametrize("how", ["person", "engine"])
async def test_a_tree_is_cancelled(house: House, how: str) -> None:
    """TT-19, DA-31. Terminated as a whole, with its callbacks; what it waits for does not matter."""
    NOTES.clear()
    async with house.with_app(app) as busy:
        run_id = await busy.start({}, "sleeper")

        async def rests() -> bool:
            return "agent.model_answered" in {event.kind for event in await busy.events(run_id)}

        await eventually(rests, "the tree rests")
        if how == "person":
            await busy.runs.cancel(str(run_id), CancelRequest("olga", "enough"))
        else:
            await busy.client.get_workflow_handle(str(run_id)).cancel()
        row = await busy.reaches(run_id, "CANCELLED")
        assert how != "person" or row.failure == "cancelled by olga: enough"
        kinds = {event.kind for event in await busy.events(run_id)}
        assert kinds >= {"agent.run_cancelled", "agent.node_terminated"}
        assert {note for note in NOTES if note.startswith("t")} == {"terminated", "terminated below"}


async def test_a_tree_at_rest_has_its_rows(house: House) -> None:
    """DA-4, DA-35. It waits for a timer, without a step to carry its rows; a decision that nobody asked for is told."""
    async with house.with_app(app) as busy:
        run_id = await busy.start({}, "sleeper")
        await busy.reaches(run_id, "RUNNING")
        await busy.runs.decide(str(run_id), Decision("r", "d-1", "approve", "", "rita"))

        async def told() -> bool:
            return "decision_ignored:d-1" in {event.kind for event in await busy.events(run_id)}

        await eventually(told, "the decision is told")
        standing = await busy.runs.standing(str(run_id))
        assert standing is not None
        assert (standing.status, standing.unsent) == ("RUNNING", 0)
        await busy.runs.cancel(str(run_id), CancelRequest("olga", ""))
        await busy.reaches(run_id, "CANCELLED")


async def test_the_sweep_starts_a_tree_that_was_left_pending(house: House) -> None:
    """DA-8. The row is the promise, whatever it is a run of."""
    async with house.with_app(app) as busy:
        row = await busy.accept({"words": "hello"}, "ordered")
        assert (await sweep_now(busy)).started == 1
        await busy.reaches(row.run_id, "COMPLETED")
