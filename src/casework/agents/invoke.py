"""Running one tool under its deadline, and sorting what goes wrong into the three classes of errors.

- `ToldError`, `RetryableError` and `FatalError` that a tool raises pass as they are.
- Any other error of this package (bad input, not found, not possible now) is a business refusal: ToldError.
- The deadline, time-outs, broken connections and every unknown exception are RetryableError. Each tool has declared
  that it is safe to repeat, so trying again does no harm; the engine bounds the attempts and, when they are spent,
  closes the step FAILED and tells the model the last error. So a bug in one tool never fails a run by itself.
- A result without plain form is FatalError: it would be the same at every attempt.

Each call runs in a daemon thread of its own, with the caller's context variables; an async tool in an event loop of
that thread. So a tool that blocks holds up nobody else's heartbeat, nor the end of the worker. A thread cannot be
stopped: after the deadline an async tool is cancelled, and what still comes is dropped here. An async client belongs to
the loop that opened it: open it inside the tool. Two things stay on the worker's loop, whose database connections they
use: a transactional tool, and the reading behind `ctx.policy`; and a tool that is declared inline, for which a thread
would cost many times what it does. Nothing can stop that one; past its deadline what it returns does not count.

Texts of errors are bounded, and secrets in them struck (`scrub`).
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from casework.agents import scrub
from casework.agents.tools import Happened, Repeat, Tool, ToolContext
from casework.errors import CaseworkError, FatalError, OperationError, RetryableError, ToldError, UnserialisableError
from casework.policy.limits import PolicyReading, PolicySource
from casework.values import Plain, dumps, plain

BeforeAct = Callable[[], Awaitable[None]]
"""Raises where the tool must not act."""


async def invoke(tool: Tool, ctx: ToolContext, arguments: Plain, before_act: BeforeAct | None = None) -> Plain:
    """Check the arguments, run the tool once and return its result as plain data.

    `before_act` is awaited last of all before the tool acts, after any verifying; what it raises ends the call.

    A tool declared `verify` is asked first, from the second attempt on, whether its effect happened; then its answer is
    the result and the tool does not act. Verifying and acting share one deadline.

    Raises:
        ToldError: wrong arguments, or the tool refused; the model is told.
        RetryableError: passing trouble, the deadline, or an exception that nobody knows; try the operation again.
        FatalError: the run cannot go on, or the result has no plain form.
    """
    if tool.inline:
        return _computed(tool, ctx, await _ready(tool, arguments, before_act))
    deadline = asyncio.timeout(tool.timeout)
    try:
        kwargs = tool.bind(arguments)
        async with deadline:
            result = await _verify_or_act(tool, ctx, kwargs, before_act)
    except GeneratorExit:
        raise
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        # `from None`: the original may hold a secret in its text.
        raise _sorted(tool, error, expired=deadline.expired()) from None
    return _plain_result(tool, result)


def invoke_inline(tool: Tool, ctx: ToolContext, arguments: Plain) -> Plain:
    """As `invoke`, for a tool that is declared inline, where its caller does not wait for anything.

    Raises:
        ToldError, RetryableError, FatalError: as `invoke`.
    """
    try:
        kwargs = tool.bind(arguments)
    except Exception as error:  # noqa: BLE001  # sorted; a type of the tool's own may raise anything
        raise _sorted(tool, error, expired=False) from None
    return _computed(tool, ctx, kwargs)


async def _ready(tool: Tool, arguments: Plain, before_act: BeforeAct | None) -> dict[str, Any]:
    """The arguments as the tool takes them, when it may act."""
    try:
        kwargs = tool.bind(arguments)
        if before_act is not None:
            await before_act()
    except BaseException as error:
        if _leaves(error):
            raise
        raise _sorted(tool, error, expired=False) from None
    return kwargs


def _computed(tool: Tool, ctx: ToolContext, kwargs: dict[str, Any]) -> Plain:
    """The result of an inline tool: nothing can stop it, so its deadline is looked at afterwards."""
    try:
        began = time.monotonic()
        result = tool.function(*_first(tool, ctx), **kwargs)
        late = time.monotonic() - began > tool.timeout
    except BaseException as error:
        if _leaves(error):
            raise
        raise _sorted(tool, error, expired=False) from None
    if late:
        raise _sorted(tool, TimeoutError(), expired=True)
    return _plain_result(tool, result)


def _leaves(error: BaseException) -> bool:
    """Whether `error` is no matter of the tool's: it ends what surrounds the call."""
    return isinstance(error, (GeneratorExit, KeyboardInterrupt)) or (
        isinstance(error, asyncio.CancelledError) and _is_cancelled()
    )


def _is_cancelled() -> bool:
    """Whether the caller is being cancelled, not only the tool's own affairs."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _verify_or_act(tool: Tool, ctx: ToolContext, kwargs: dict[str, Any], before_act: BeforeAct | None) -> Any:
    if tool.repeat is Repeat.VERIFY and tool.verify is not None and ctx.attempt > 1:
        answer = await _call(tool.verify, tool, ctx, kwargs)
        if isinstance(answer, Happened):
            return answer.result
        if answer is not None:
            raise FatalError(f"Tool '{tool.name}': verify returned {answer!r}. Return Happened(result), or None.")
    if before_act is not None:
        await before_act()
    return await _call(tool.function, tool, ctx, kwargs)


async def _call(function: Callable[..., Any], tool: Tool, ctx: ToolContext, kwargs: dict[str, Any]) -> Any:
    if tool.repeat is Repeat.TRANSACTIONAL:
        return await function(*_first(tool, ctx), **kwargs)
    if ctx.policies is not None:
        ctx = replace(ctx, policies=_PolicyOfLoop(ctx.policies, asyncio.get_running_loop()))
    return await _apart(lambda: function(*_first(tool, ctx), **kwargs))


def _first(tool: Tool, ctx: ToolContext) -> tuple[ToolContext, ...]:
    return (ctx,) if tool.signature.takes_context else ()


class _PolicyOfLoop:
    """A policy source that reads on the loop it belongs to, whoever asks."""

    def __init__(self, source: PolicySource, loop: asyncio.AbstractEventLoop) -> None:
        self._source = source
        self._loop = loop

    async def read(self, purpose: str) -> PolicyReading:
        reading = asyncio.run_coroutine_threadsafe(self._read(purpose), self._loop)
        return await asyncio.wrap_future(reading)

    async def _read(self, purpose: str) -> PolicyReading:
        return await self._source.read(purpose)


async def _apart(call: Callable[[], Any]) -> Any:
    """Run `call` in a new thread; the pool of the loop could be filled by calls that hang."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.done():
            return
        done.set_result(result) if error is None else done.set_exception(error)

    def report(result: Any, error: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    work = _Work(call, report)
    threading.Thread(target=work.run, name="casework-tool", daemon=True).start()
    try:
        return await done
    except asyncio.CancelledError:
        work.cancel()
        raise


class _Work:
    """One call in its thread. What it gives to be awaited is awaited there, and cancelled from outside."""

    def __init__(self, call: Callable[[], Any], report: Callable[[Any, BaseException | None], None]) -> None:
        self._call = call
        self._report = report
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._cancelled = False
        self._awaiting: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None

    def run(self) -> None:
        try:
            result = self._context.run(self._call)
        except BaseException as error:  # noqa: BLE001 - carried to the caller, whatever it is
            self._report(None, _carriable(error))
            return
        if inspect.isawaitable(result):
            self._await(result)
        else:
            self._report(result, None)

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            if self._awaiting is not None:
                loop, task = self._awaiting
                loop.call_soon_threadsafe(task.cancel)

    def _await(self, awaitable: Any) -> None:
        # Closing the loop waits for what the tool left running in it; the caller has its result before.
        with contextlib.suppress(BaseException), asyncio.Runner() as runner:
            try:
                result = runner.run(self._awaited(awaitable), context=self._context)
            except BaseException as error:  # noqa: BLE001 - as above
                self._report(None, _carriable(error))
            else:
                self._report(result, None)

    async def _awaited(self, awaitable: Any) -> Any:
        task = asyncio.current_task()
        assert task is not None
        with self._lock:
            self._awaiting = asyncio.get_running_loop(), task
            if self._cancelled:
                task.cancel()
        try:
            return await awaitable
        finally:
            with self._lock:
                self._awaiting = None


class _ToolExitError(Exception):
    """A tool left by an exception that would end more than its call."""


def _carriable(error: BaseException) -> BaseException:
    """A future refuses StopIteration, an exit in a thread must not end the worker, nor a cancelled part the whole."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return _ToolExitError(scrub.words_of(error))


def _sorted(tool: Tool, error: BaseException, *, expired: bool) -> OperationError:
    """The one class of an error, with a text that may be kept."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, OperationError):
        return scrub.mended(error, os.environ)
    if isinstance(error, CaseworkError):
        return ToldError(_told(f"{tool.name}: {error}"))
    if isinstance(error, TimeoutError) and expired:
        return RetryableError(f"Tool '{tool.name}' gave no answer within its deadline of {tool.timeout:g} s.")
    said = str(error) if isinstance(error, _ToolExitError) else scrub.words_of(error)
    return RetryableError(_told(f"Tool '{tool.name}' failed: {said}"))


def _told(text: str) -> str:
    return scrub.told(text, os.environ)


def _plain_result(tool: Tool, result: Any) -> Plain:
    try:
        made = plain(result, f"result of {tool.name}")
        if isinstance(made, (dict, list)):
            dumps(made)
    except UnserialisableError as error:
        raise FatalError(f"Tool '{tool.name}': {error}") from error
    except Exception as error:  # noqa: BLE001 - what a class of the tool's own may raise when it is read
        raise FatalError(_told(f"Tool '{tool.name}': its result cannot be read: {scrub.words_of(error)}")) from None
    return made
