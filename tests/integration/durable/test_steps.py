"""One step at a time: what is in the ledger is not done again, and each declaration keeps its promise."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from casework.agents import Happened, ModelAnswer, ModelRequest, Repeat, ToolContext, tool
from casework.app import App
from casework.durable.activities.model import ModelActivity
from casework.durable.activities.tool import TOLD_BYTES, ToolActivity
from casework.durable.contracts import ModelCall, Owner, Say, ToolCall, ToolReply
from casework.errors import FatalError, ToldError
from casework.store import ledger, messages, runs
from casework.store.ledger import StepClaim
from casework.store.rows import AttemptRow
from casework.values import ENTRY_BYTES, TEXT_LIMIT, dumps
from tests.integration.durable.apps import asking, errand
from tests.integration.durable.conftest import TENANT, House

DEADLINE_S = 20
PATH = "act.1/exchange.1/act_once.1"


def call_of(run_id: UUID, **changes: Any) -> ToolCall:
    given: dict[str, Any] = {
        "owner": Owner(TENANT, str(run_id)),
        "path": PATH,
        "workflow": "errand",
        "workflow_version": 1,
        "node": "act",
        "agent": "runner",
        "turn": 1,
        "name": "act_once",
        "arguments": {},
    }
    return ToolCall(**{**given, **changes})


class Bench:
    """A house whose application has the tool under test, and a run to call it in."""

    def __init__(self, house: House, run_id: UUID) -> None:
        self.house = house
        self.run_id = run_id
        self._call = ToolActivity(house.services()).call_tool

    async def call(self, **changes: Any) -> ToolReply:
        reply: ToolReply = await ActivityEnvironment().run(self._call, call_of(self.run_id, **changes))
        return reply

    async def attempts(self) -> list[AttemptRow]:
        async with self.house.db.transaction() as conn:
            return await runs.attempts(conn, TENANT, self.run_id)

    async def effects(self) -> list[str]:
        async with self.house.db.transaction() as conn:
            found = await conn.execute("select how from public.effect order by how")
            return [row[0] for row in await found.fetchall()]

    async def lose_an_attempt(self) -> int:
        """Claim the step and report nothing, as a worker that is killed does; returns the attempt."""
        async with self.house.db.transaction() as conn:
            step = StepClaim(TENANT, self.run_id, PATH, "tool", "act_once", "1", {}, 1, "act")
            return (await ledger.claim(conn, step)).attempt


Setting = Callable[[App], Awaitable[Bench]]


@pytest.fixture
def bench(house: House) -> Setting:
    async def make(app: App) -> Bench:
        house.app = app
        await house.open()
        return Bench(house, (await house.accept({}, "errand")).run_id)

    return make


async def test_a_committed_result_is_returned_and_the_tool_is_not_called(bench: Setting, tmp_path: Path) -> None:
    """DA-2, DA-16, DA-24. The result came into the ledger and its acknowledgement was lost: the retry finds it."""
    calls: list[str] = []

    @tool(repeat=Repeat.KEYED)
    def act_once(ctx: ToolContext) -> dict[str, str]:
        """Act."""
        calls.append(ctx.key)
        return {"key": ctx.key}

    on = await bench(errand(tmp_path, [act_once], asking()))
    first, second = await on.call(), await on.call()
    assert first == second
    assert first.result == {"key": calls[0]}
    assert len(calls) == 1
    assert [(each.attempt, each.outcome) for each in await on.attempts()] == [(1, "COMPLETED")]


async def test_the_same_path_with_other_arguments_is_a_conflict(bench: Setting, tmp_path: Path) -> None:
    """DA-24, DA-25. Another hash is a conflict: not retried, and recorded as an event in its own transaction."""

    @tool(effects=False)
    def act_once(what: str = "") -> str:
        """Act."""
        return what

    on = await bench(errand(tmp_path, [act_once], asking()))
    await on.call(arguments={"what": "this"})
    with pytest.raises(ApplicationError, match="other tool, version or arguments") as caught:
        await on.call(arguments={"what": "that"})
    assert caught.value.type == "ConflictError"
    assert caught.value.non_retryable
    assert [event.kind.partition(":")[0] for event in await on.house.events(on.run_id)][-1] == "conflict"


async def test_every_attempt_has_the_same_key_and_a_lost_one_is_told(bench: Setting, tmp_path: Path) -> None:
    """DA-25, DA-27. A keyed tool passes on one key for all attempts; an unreported attempt is closed as LOST."""
    keys: list[tuple[str, int]] = []

    @tool(repeat=Repeat.KEYED)
    async def act_once(ctx: ToolContext) -> str:
        """Act."""
        keys.append((ctx.key, ctx.attempt))
        if len(keys) == 1:
            raise ConnectionError("cut")
        return "done"

    on = await bench(errand(tmp_path, [act_once], asking()))
    with pytest.raises(ApplicationError) as caught:
        await on.call()
    assert not caught.value.non_retryable
    assert await on.lose_an_attempt() == 2
    assert (await on.call()).result == "done"
    assert [attempt for _, attempt in keys] == [1, 3]
    assert len({key for key, _ in keys}) == 1
    assert [each.outcome for each in await on.attempts()] == ["FAILED", "LOST", "COMPLETED"]
    assert "attempt_lost:2" in [event.kind for event in await on.house.events(on.run_id)]


async def test_a_late_attempt_is_kept_and_not_used(bench: Setting, tmp_path: Path) -> None:
    """DA-24. The first attempt is still alive when the second starts: its result is LATE, the second one counts."""
    go_on = threading.Event()
    started = threading.Event()

    @tool(repeat=Repeat.KEYED)
    def act_once(ctx: ToolContext) -> str:
        """Act."""
        if ctx.attempt == 1:
            started.set()
            assert go_on.wait(DEADLINE_S)
        return f"attempt {ctx.attempt}"

    on = await bench(errand(tmp_path, [act_once], asking()))
    slow = asyncio.create_task(on.call())
    assert await asyncio.to_thread(started.wait, DEADLINE_S)
    assert (await on.call()).result == "attempt 2"
    go_on.set()
    with pytest.raises(ApplicationError, match="came too late"):
        await slow
    assert {each.attempt: each.outcome for each in await on.attempts()} == {1: "LATE", 2: "COMPLETED"}
    [step] = await on.house.steps(on.run_id)
    assert step.result == "attempt 2"


async def test_a_transactional_tool_has_its_effect_with_its_row_or_not_at_all(bench: Setting, tmp_path: Path) -> None:
    """DA-27. Effect and ledger row commit together; a refusal leaves no effect."""

    @tool(repeat=Repeat.TRANSACTIONAL)
    async def act_once(ctx: ToolContext, how: str) -> str:
        """Act."""
        await ctx.connection.execute("insert into public.effect values (%s)", (how,))
        if how == "refused":
            raise ToldError("no")
        return how

    on = await with_effects(bench, errand(tmp_path, [act_once], asking()))
    refused = await on.call(arguments={"how": "refused"}, path="act.1/exchange.1/act_once.2")
    assert (refused.state, await on.effects()) == ("FAILED", [])
    for _ in range(2):
        assert (await on.call(arguments={"how": "done"})).result == "done"
    assert await on.effects() == ["done"]


EFFECT = "insert into public.effect values ('made')"


async def with_effects(bench: Setting, app: App) -> Bench:
    """A bench with a table that tools may write."""
    on = await bench(app)
    async with on.house.db.transaction() as conn:
        await conn.execute(
            "set local role none; create table public.effect (how text primary key deferrable initially deferred);"
            " grant all on public.effect to public"
        )
    return on


@pytest.mark.parametrize("statement", ["commit", "reset role", "select set_config('role', session_user, false)"])
async def test_a_transactional_tool_cannot_end_its_transaction(bench: Setting, tmp_path: Path, statement: str) -> None:
    """DA-27. What ends or reconfigures the transaction is found, no effect is kept, and it is not done again."""

    @tool(repeat=Repeat.TRANSACTIONAL)
    async def act_once(ctx: ToolContext) -> None:
        """Act."""
        await ctx.connection.execute(EFFECT)
        await ctx.connection.execute(statement)

    on = await with_effects(bench, errand(tmp_path, [act_once], asking()))
    with pytest.raises(ApplicationError, match="belong to the engine") as caught:
        await on.call()
    assert caught.value.type == FatalError.__name__
    assert await on.effects() == []
    assert [each.outcome for each in await on.attempts()] == ["FAILED"]


@pytest.mark.parametrize(
    "statements",
    [["select 1 / 0"], [EFFECT, EFFECT], ["select pg_terminate_backend(pg_backend_pid())"], ["select pg_sleep(30)"]],
)
async def test_trouble_of_a_transactional_tool_is_an_attempt(
    bench: Setting, tmp_path: Path, statements: list[str]
) -> None:
    """DA-18. Its own errors, a deferred constraint, a lost connection, its deadline: tried again, and counted."""

    @tool(repeat=Repeat.TRANSACTIONAL, timeout=1)
    async def act_once(ctx: ToolContext) -> None:
        """Act."""
        for statement in statements:
            await ctx.connection.execute(statement)

    on = await with_effects(bench, errand(tmp_path, [act_once], asking()))
    async with on.house.db.transaction() as conn:
        await conn.execute("set local role none; grant pg_signal_backend to casework_runtime")
    with pytest.raises(ApplicationError) as caught:
        await on.call()
    assert caught.value.type == "RetryableError"
    assert await on.effects() == []
    assert [each.outcome for each in await on.attempts()] == ["FAILED"]


async def test_long_errors_are_cut_before_they_are_kept(bench: Setting, tmp_path: Path) -> None:
    """DA-22. The text of a refusal or a failure has a bound in the rows, the message, the event and the history."""

    @tool(effects=False)
    def act_once(how: str) -> None:
        """Act."""
        raise (ToldError if how == "told" else FatalError)("x" * 100_000)

    on = await bench(errand(tmp_path, [act_once], asking()))
    reply = await on.call(arguments={"how": "told"})
    assert len(reply.error or "") < 2 * TEXT_LIMIT
    with pytest.raises(ApplicationError) as caught:
        await on.call(arguments={"how": "fatal"}, path="act.1/exchange.1/act_once.2")
    assert len(caught.value.message) < 2 * TEXT_LIMIT
    assert all(len(step.error or "") < 2 * TEXT_LIMIT for step in await on.house.steps(on.run_id))
    assert all(len(each.error or "") < 2 * TEXT_LIMIT for each in await on.attempts())
    assert all(len(dumps(event.data)) < 2 * TEXT_LIMIT for event in await on.house.events(on.run_id))


@pytest.mark.parametrize("repeat", [Repeat.KEYED, Repeat.TRANSACTIONAL])
@pytest.mark.parametrize(("position", "limit"), [(0, ENTRY_BYTES), (5, TOLD_BYTES)])
async def test_a_result_that_is_too_large_is_fatal(
    bench: Setting, tmp_path: Path, repeat: Repeat, position: int, limit: int
) -> None:
    """DA-22. A node's result goes through the history, a model's through the transcript: over the bound, neither."""

    @tool(repeat=repeat)
    async def act_once(ctx: ToolContext, size: int) -> str:
        """Act."""
        return "x" * size

    on = await bench(errand(tmp_path, [act_once], asking()))
    fits = await on.call(arguments={"size": limit - 2}, position=position, call_id="c", path="act.1/act_once.1")
    assert fits.state == "COMPLETED"
    with pytest.raises(ApplicationError, match=f"result of act_once .*text of .*over the limit of {limit:,}") as caught:
        await on.call(arguments={"size": limit}, position=position, call_id="c", path="act.1/act_once.2")
    assert caught.value.type == FatalError.__name__
    assert [step.result is None for step in await on.house.steps(on.run_id)] == [False, True]


async def test_a_verify_tool_asks_before_it_acts_again(bench: Setting, tmp_path: Path) -> None:
    """DA-27. After an attempt of which nobody knows, the destination is asked; what happened is not done again."""
    sent: list[str] = []

    def look(ctx: ToolContext) -> Happened | None:
        return Happened({"found": ctx.key}) if ctx.key in sent else None

    @tool(repeat=Repeat.VERIFY, verify=look)
    def act_once(ctx: ToolContext) -> dict[str, str]:
        """Act."""
        sent.append(ctx.key)
        raise ConnectionError("the answer was lost")

    on = await bench(errand(tmp_path, [act_once], asking()))
    with pytest.raises(ApplicationError):
        await on.call()
    assert (await on.call()).result == {"found": sent[0]}
    assert len(sent) == 1
    (told,) = [event.data for event in await on.house.events(on.run_id) if event.kind == "agent.tool_completed"]
    assert told == {"name": "act_once", "error": None, "found": True}


async def test_a_tool_that_nobody_registered_is_fatal(bench: Setting, tmp_path: Path) -> None:
    """AW-17. A step that names an unknown tool is not retried; the near name is suggested."""

    @tool(effects=False)
    def act_once() -> str:
        """Act."""
        return ""

    on = await bench(errand(tmp_path, [act_once], asking()))
    with pytest.raises(ApplicationError, match="Did you mean 'act_once'") as caught:
        await on.call(name="act_onze")
    assert caught.value.non_retryable


async def test_what_postgresql_cannot_hold_is_replaced_and_told(bench: Setting, tmp_path: Path) -> None:
    """NUL, half characters and NaN in a result change by the one rule, and the row says how often."""

    @tool(effects=False)
    def act_once() -> dict[str, Any]:
        """Act."""
        return {"text": "a\x00b\ud800", "number": float("nan")}

    on = await bench(errand(tmp_path, [act_once], asking()))
    assert (await on.call()).state == "COMPLETED"
    [step] = await on.house.steps(on.run_id)
    assert step.result == {"text": "a\u2400b\ufffd", "number": "NaN"}
    assert step.cleaned == 3


async def test_a_model_answer_in_the_ledger_is_not_asked_for_again(house: House, tmp_path: Path) -> None:
    """DA-16, DA-28. Answer, message and event are one commit; a repeat of the call returns the recorded answer."""
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> ModelAnswer:
        asked.append(request)
        return ModelAnswer(text="done", tokens_in=7, tokens_out=3)

    house.app = errand(tmp_path, [], script)
    await house.open()
    run_id = (await house.accept({}, "errand")).run_id
    call = ModelCall(
        Owner(TENANT, str(run_id)),
        "act.1/exchange.1/model.1",
        "errand",
        1,
        "act",
        "runner",
        1,
        1,
        2,
        (Say(1),),
        {"input": {}},
    )
    activity = ModelActivity(house.services()).call_model
    replies = [await ActivityEnvironment().run(activity, call) for _ in range(2)]
    assert replies[0] == replies[1]
    assert replies[0].output == "done"
    assert [message.content for message in asked[0].messages] == ["Do the errand."]
    assert len(asked) == 1
    async with house.db.transaction() as conn:
        rows = await messages.page(conn, TENANT, run_id)
    assert [(row.position, row.role, row.content) for row in rows] == [
        (1, "user", "Do the errand."),
        (2, "assistant", "done"),
    ]
