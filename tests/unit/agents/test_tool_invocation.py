"""Running one tool: deadline, threads, and the three classes of errors."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from casework.agents import Happened, Repeat, Tool, ToolContext, tool
from casework.agents.invoke import invoke
from casework.errors import (
    FatalError,
    NotFoundError,
    OperationError,
    PolicyUnavailableError,
    RetryableError,
    StoreUnavailableError,
    ToldError,
    UnserialisableError,
)

CONTEXT = ToolContext("default", UUID(int=1), "underwrite.1/exchange.1/t.1", "key-1")
VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


def made(function: Any, **options: Any) -> Tool:
    function.__doc__ = "Doc."
    return tool(**{"repeat": Repeat.IDEMPOTENT, "name": "t", **options})(function)


async def test_sync_and_async_tools_give_plain_results() -> None:
    """AW-17. Results are plain data, whatever kind of function made them."""

    def in_thread(ctx: ToolContext, amount: Decimal) -> dict[str, Any]:
        return {"amount": amount, "key": ctx.key, "thread": threading.current_thread().name, "seen": VARIABLE.get()}

    async def in_loop(amount: Decimal) -> tuple[Decimal, UUID]:
        return amount, UUID(int=2)

    VARIABLE.set("set by the caller")
    sync_result = await invoke(made(in_thread), CONTEXT, {"amount": Decimal("1.10")})
    assert sync_result == {
        "amount": Decimal("1.10"),
        "key": "key-1",
        "thread": "casework-tool",
        "seen": "set by the caller",
    }
    assert await invoke(made(in_loop), CONTEXT, {"amount": 1}) == [Decimal(1), str(UUID(int=2))]


@pytest.mark.parametrize(
    ("raised", "becomes"),
    [
        (ToldError("no such customer"), ToldError),
        (RetryableError("come again", retry_after=3), RetryableError),
        (StoreUnavailableError("gone"), StoreUnavailableError),
        (FatalError("stop"), FatalError),
        (PolicyUnavailableError("no row"), PolicyUnavailableError),
        (NotFoundError("no such thing"), ToldError),
        (UnserialisableError("x", "object"), ToldError),
        (ConnectionResetError("cut"), RetryableError),
        (TimeoutError("the peer's own"), RetryableError),
        (KeyError("a bug"), RetryableError),
        (StopIteration("odd"), RetryableError),
    ],
)
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_each_exception_has_one_class(raised: Exception, becomes: type[Exception], kind: str) -> None:
    """DA-18. Retry, tell the model, or fail the run: never mixed."""

    def fails() -> None:
        raise raised

    async def fails_async() -> None:
        raise raised

    if kind == "async" and isinstance(raised, StopIteration):
        becomes = RetryableError  # the event loop makes a RuntimeError of it
    with pytest.raises(becomes) as caught:
        await invoke(made(fails if kind == "sync" else fails_async), CONTEXT, {})
    assert type(caught.value) is becomes


async def test_a_thread_that_exits_does_not_end_the_worker() -> None:
    """DA-18. SystemExit inside a tool is a fault of the tool."""

    def exits() -> None:
        raise SystemExit(3)

    with pytest.raises(RetryableError, match="SystemExit"):
        await invoke(made(exits), CONTEXT, {})


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_the_deadline_is_enforced(kind: str) -> None:
    """DA-27. A tool that gives no answer is given up at its deadline, in a thread or not; others go on meanwhile."""
    released = threading.Event()

    def hangs() -> None:
        released.wait(30)

    async def hangs_async() -> None:
        await asyncio.Event().wait()

    slow = made(hangs if kind == "sync" else hangs_async, timeout=0.05)
    try:
        results = await asyncio.gather(*(invoke(slow, CONTEXT, {}) for _ in range(50)), return_exceptions=True)
        assert {type(result) for result in results} == {RetryableError}
        assert "deadline of 0.05 s" in str(results[0])

        def quick() -> int:
            return 1

        # 50 hanging threads fill no pool that this one would wait for.
        assert await invoke(made(quick), CONTEXT, {}) == 1
    finally:
        released.set()


async def test_cancelling_stays_cancelling() -> None:
    """DA-19. A worker that stops is no failure of the tool; the tool is cancelled where it waits."""
    started, cancelled = threading.Event(), threading.Event()

    async def waits() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    task = asyncio.create_task(invoke(made(waits), CONTEXT, {}))
    assert await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(cancelled.wait, 10)


async def test_an_async_tool_that_blocks_holds_up_nobody_else() -> None:
    """DA-22. Its thread is its own: heartbeats and other tools go on, and it is given up at its deadline."""
    released = threading.Event()

    async def blocks() -> None:
        released.wait(30)

    async def neighbour() -> int:
        await asyncio.sleep(0)
        return 1

    try:
        blocked = asyncio.create_task(invoke(made(blocks, timeout=0.2), CONTEXT, {}))
        assert await asyncio.wait_for(invoke(made(neighbour), CONTEXT, {}), 10) == 1
        with pytest.raises(RetryableError, match="deadline"):
            await blocked
    finally:
        released.set()


async def test_policy_is_read_on_the_workers_loop() -> None:
    """DA-42. The pool of connections belongs to that loop; the tool runs in another."""
    home, seen = asyncio.get_running_loop(), []

    class Source:
        async def read(self, purpose: str) -> Any:
            seen.append(asyncio.get_running_loop())
            await asyncio.sleep(0)
            if purpose == "house":
                raise PolicyUnavailableError("no row")
            return purpose

    async def asks(ctx: ToolContext, purpose: str) -> Any:
        seen.append(asyncio.get_running_loop())
        return await ctx.policy(purpose)

    ctx = replace(CONTEXT, policies=Source())
    assert await invoke(made(asks), ctx, {"purpose": "Car"}) == "car"
    assert seen[0] is not home
    assert seen[1] is home
    with pytest.raises(PolicyUnavailableError, match="no row"):
        await invoke(made(asks), ctx, {"purpose": "house"})


async def test_a_transactional_tool_runs_on_the_workers_loop() -> None:
    """DA-27. Its connection belongs to that loop."""

    async def writes(ctx: ToolContext) -> bool:
        return asyncio.get_running_loop() is ctx.connection

    ctx = replace(CONTEXT, connection=asyncio.get_running_loop())
    assert await invoke(made(writes, repeat=Repeat.TRANSACTIONAL), ctx, {}) is True


EXITS = [
    asyncio.CancelledError("own"),
    KeyboardInterrupt(),
    SystemExit(3),
    ExceptionGroup("several", [ValueError("one"), KeyError("two")]),
    BaseExceptionGroup("several", [KeyboardInterrupt("one"), ValueError("two")]),
]


@pytest.mark.parametrize("raised", EXITS, ids=lambda raised: type(raised).__name__)
@pytest.mark.parametrize("kind", ["sync", "async", "transactional"])
async def test_whatever_a_tool_leaves_by_is_a_failed_attempt(raised: BaseException, kind: str) -> None:
    """DA-18. Only the activity's own cancelling is one; the rest is a fault of the tool, with a text."""

    def fails() -> None:
        raise raised

    async def fails_async(ctx: ToolContext) -> None:
        raise raised

    options = {"repeat": Repeat.TRANSACTIONAL} if kind == "transactional" else {}
    with pytest.raises(RetryableError, match=type(raised).__name__):
        await invoke(made(fails if kind == "sync" else fails_async, **options), CONTEXT, {})


async def test_a_group_of_one_is_that_one() -> None:
    """DA-18. A task group around a refusal does not make passing trouble of it."""

    async def refuses() -> None:
        raise ExceptionGroup("unhandled errors in a TaskGroup", [ToldError("no such customer")])

    with pytest.raises(ToldError, match=r"^no such customer$"):
        await invoke(made(refuses), CONTEXT, {})


@pytest.mark.parametrize("kind", [RuntimeError, ToldError, RetryableError, FatalError, NotFoundError])
async def test_what_an_error_says_is_bounded_and_holds_no_secret(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-18. It is stored, shown and told to a model."""
    monkeypatch.setenv("BUREAU_API_KEY", "quite-secret-value")
    text = (
        "at https://ann:hunter22@db/x with Bearer abcdef.123456, quite-secret-value and password=swordfish \x00\ud800"
    )

    def fails() -> None:
        raise kind(text + "x" * 10_000)

    with pytest.raises(OperationError) as caught:
        await invoke(made(fails), CONTEXT, {})
    said = str(caught.value)
    for secret in ("hunter22", "abcdef.123456", "quite-secret-value", "swordfish", "\x00", "\ud800"):
        assert secret not in said
    assert "https://***@db/x" in said
    assert len(said) < 2_200
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("asked", "given"), [(3, 3), (-1, 0), (1e9, 300), (float("inf"), 300), (float("nan"), None), ("soon", None)]
)
async def test_a_delay_is_bounded(asked: Any, given: float | None) -> None:
    """DA-18. A peer cannot put a step to sleep for ever."""

    def busy() -> None:
        raise RetryableError("come again", retry_after=asked)

    with pytest.raises(RetryableError) as caught:
        await invoke(made(busy), CONTEXT, {})
    assert caught.value.retry_after == given


async def test_an_error_without_readable_text_and_a_result_that_cannot_be_read() -> None:
    """DA-18. Odd objects of a tool are its own fault, and said as such."""

    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError("no")

    class Result:
        def model_dump(self, by_alias: bool) -> Any:
            raise KeyError("gone")

    def fails() -> None:
        raise Odd

    def gives() -> Any:
        return Result()

    with pytest.raises(RetryableError, match="Odd: its text cannot be read"):
        await invoke(made(fails), CONTEXT, {})
    with pytest.raises(FatalError, match="its result cannot be read: KeyError"):
        await invoke(made(gives), CONTEXT, {})


async def test_a_result_without_plain_form_fails_at_once_and_names_field_and_type() -> None:
    """DA-22. Trying again would give the same."""

    def gives() -> dict[str, Any]:
        return {"a": [object()]}

    with pytest.raises(FatalError, match=r"result of t\.a\[0\] cannot be stored: object"):
        await invoke(made(gives), CONTEXT, {})


async def test_wrong_arguments_never_reach_the_tool() -> None:
    """AW-17. The gate is in the runtime."""
    called = []

    def acts(amount: int) -> None:
        called.append(amount)

    with pytest.raises(ToldError):
        await invoke(made(acts), CONTEXT, {"amount": "much"})
    assert not called


async def test_verify_is_asked_before_acting_again() -> None:
    """DA-27. From the second attempt on the destination is asked; what it has is not done again."""
    destination: dict[str, int] = {}
    acts = []

    def pays(ctx: ToolContext, amount: int) -> int:
        acts.append(ctx.attempt)
        destination[ctx.key] = amount
        return amount

    async def asks(ctx: ToolContext, amount: int) -> Happened | None:
        return Happened(destination[ctx.key]) if ctx.key in destination else None

    verified = made(pays, repeat=Repeat.VERIFY, verify=asks)
    again = replace(CONTEXT, attempt=2)
    assert await invoke(verified, again, {"amount": 5}) == 5
    assert acts == [2], "the first attempt's effect had not happened"
    assert await invoke(verified, again, {"amount": 5}) == 5
    assert acts == [2], "now it had"


async def test_a_context_without_policy_says_so() -> None:
    """DA-42. Closed, not open."""
    with pytest.raises(PolicyUnavailableError, match="no policy source"):
        await CONTEXT.policy("car")
