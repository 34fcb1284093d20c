"""Running one tool under its deadline, and sorting what goes wrong into the three classes of errors.

- `ToldError`, `RetryableError` and `FatalError` that a tool raises pass as they are.
- Any other error of this package (bad input, not found, not possible now) is a business refusal: ToldError.
- The deadline, time-outs, broken connections and every unknown exception are RetryableError. Each tool has declared
  that it is safe to repeat, so trying again does no harm; the engine bounds the attempts and, when they are spent,
  closes the step FAILED and tells the model the last error. So a bug in one tool never fails a run by itself.
- A result without plain form is FatalError: it would be the same at every attempt.

A sync tool runs in a thread of its own (with the caller's context variables). A thread cannot be stopped: after the
deadline its late result is dropped here. It is a daemon, so a tool that hangs does not hold up the end of the worker.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any

from casework.agents.tools import Happened, Repeat, Tool, ToolContext
from casework.errors import CaseworkError, FatalError, OperationError, RetryableError, ToldError, UnserialisableError
from casework.values import Plain, dumps, plain


async def invoke(tool: Tool, ctx: ToolContext, arguments: Plain) -> Plain:
    """Check the arguments, run the tool once and return its result as plain data.

    A tool declared `verify` is asked first, from the second attempt on, whether its effect happened; then its answer is
    the result and the tool does not act. Verifying and acting share one deadline.

    Raises:
        ToldError: wrong arguments, or the tool refused; the model is told.
        RetryableError: passing trouble, the deadline, or an exception that nobody knows; try the operation again.
        FatalError: the run cannot go on, or the result has no plain form.
    """
    kwargs = tool.bind(arguments)
    try:
        async with asyncio.timeout(tool.timeout) as deadline:
            result = await _verify_or_act(tool, ctx, kwargs)
    except OperationError:
        raise
    except CaseworkError as error:
        raise ToldError(f"{tool.name}: {error}") from error
    except Exception as error:
        raise _retryable(tool, error, expired=deadline.expired()) from error
    return _plain_result(tool, result)


async def _verify_or_act(tool: Tool, ctx: ToolContext, kwargs: dict[str, Any]) -> Any:
    if tool.repeat is Repeat.VERIFY and tool.verify is not None and ctx.attempt > 1:
        answer = await _call(tool.verify, tool, ctx, kwargs)
        if isinstance(answer, Happened):
            return answer.result
        if answer is not None:
            raise FatalError(f"Tool '{tool.name}': verify returned {answer!r}. Return Happened(result), or None.")
    return await _call(tool.function, tool, ctx, kwargs)


async def _call(function: Callable[..., Any], tool: Tool, ctx: ToolContext, kwargs: dict[str, Any]) -> Any:
    args = (ctx,) if tool.signature.takes_context else ()
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    result = await _in_thread(lambda: function(*args, **kwargs))
    return await result if inspect.isawaitable(result) else result


async def _in_thread(call: Callable[[], Any]) -> Any:
    """Run `call` in a new daemon thread; the pool of the loop could be filled by calls that hang."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(set_outcome: Callable[[Any], None], outcome: Any) -> None:
        if not done.done():
            set_outcome(outcome)

    def report(set_outcome: Callable[[Any], None], outcome: Any) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, set_outcome, outcome)

    def body() -> None:
        try:
            result = context.run(call)
        except BaseException as error:  # noqa: BLE001 - carried to the caller, whatever it is
            report(done.set_exception, _carriable(error))
        else:
            report(done.set_result, result)

    threading.Thread(target=body, name="casework-tool", daemon=True).start()
    return await done


def _carriable(error: BaseException) -> BaseException:
    """A future refuses StopIteration, and an exit in a thread must not end the worker."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")


def _retryable(tool: Tool, error: Exception, *, expired: bool) -> RetryableError:
    if isinstance(error, TimeoutError) and expired:
        return RetryableError(f"Tool '{tool.name}' gave no answer within its deadline of {tool.timeout:g} s.")
    return RetryableError(f"Tool '{tool.name}' failed: {type(error).__name__}: {error}")


def _plain_result(tool: Tool, result: Any) -> Plain:
    try:
        made = plain(result, f"result of {tool.name}")
        dumps(made)
    except UnserialisableError as error:
        raise FatalError(f"Tool '{tool.name}': {error}") from error
    return made
