"""Tools: typed Python functions that a model may ask for, with the promise that makes each safe to repeat.

`@tool` reads the signature once, at import: it refuses what could not be called safely, and keeps the JSON Schema that
the model sees. A tool may run again after a crash, always; its declaration says why that does no harm.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from casework.agents.model import ToolSchema
from casework.agents.schema import Signature, read_signature
from casework.errors import PolicyUnavailableError, ToolDeclarationError
from casework.policy.limits import PolicyReading, PolicySource
from casework.policy.purposes import normalise_purpose
from casework.values import Plain

DEADLINE_LIMIT = 60.0
"""A tool's deadline is shorter than this: the start-to-close of the activity that runs it, in seconds."""

RESERVED = frozenset({"exchange", "final_answer", "model"})
"""Names that paths and the output schema use themselves."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Repeat(StrEnum):
    """Why a tool may be called again with the same arguments."""

    IDEMPOTENT = "idempotent"
    """Calling it again changes nothing more, or it has no effect at all."""
    KEYED = "keyed"
    """It passes `ctx.key` to its destination, which answers the same key with the same result."""
    TRANSACTIONAL = "transactional"
    """Its effect is made through `ctx.connection` and commits together with its result, or not at all."""
    VERIFY = "verify"
    """Its `verify` function asks the destination whether the effect happened, before it acts again."""


@dataclass(frozen=True, slots=True)
class Happened:
    """Answer of a `verify` function: the effect is there, with this result. None says that it is not."""

    result: Any = None


@dataclass(frozen=True)
class ToolContext:
    """What a tool knows about the call it serves.

    `key` is the idempotency key: the same for every attempt of this call. `attempt` counts from 1. `input` is the run's
    input, `evidence` the latest result of each tool that has completed in this run, by tool name, both as plain data.
    `connection` is an open transaction, for transactional tools only.
    """

    tenant: str
    run_id: UUID
    path: str
    key: str
    attempt: int = 1
    input: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    connection: Any = None
    policies: PolicySource | None = None

    async def policy(self, purpose: str) -> PolicyReading:
        """The governed limits for `purpose` (normalised here), as this run has adopted them.

        Raises:
            InputError: the purpose names nothing.
            PolicyUnavailableError: no row can be read and the setting is `fail_closed`.
        """
        if self.policies is None:
            raise PolicyUnavailableError(
                f"Policy for {purpose!r} cannot be read: this context has no policy source. Pass `policies`."
            )
        return await self.policies.read(normalise_purpose(purpose))


@dataclass(frozen=True)
class Tool:
    """A registered tool. Calling it calls the function it was made from."""

    name: str
    version: str
    description: str
    function: Callable[..., Any]
    repeat: Repeat
    effects: bool
    timeout: float
    signature: Signature
    verify: Callable[..., Happened | Awaitable[Happened | None] | None] | None = None
    inline: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function as it was written; nothing is checked, timed or recorded."""
        return self.function(*args, **kwargs)

    @property
    def quick(self) -> bool:
        """Whether a call that may have happened is simply made again, or has left nothing: chains may hold it."""
        return self.repeat in (Repeat.IDEMPOTENT, Repeat.TRANSACTIONAL)

    @property
    def computes(self) -> bool:
        """Whether a call has no effects and is over in one turn of its caller's loop: nobody needs to see it begin."""
        return self.inline and not self.effects

    @property
    def schema(self) -> ToolSchema:
        """The tool as the model sees it."""
        return ToolSchema(self.name, self.description, self.signature.parameters)

    def bind(self, arguments: Plain) -> dict[str, Any]:
        """The typed keyword arguments for `arguments` as the model sent them.

        Raises:
            ToldError: they do not fit; names argument, value and remedy.
        """
        return self.signature.bind(self.name, arguments)


def tool(
    *misplaced: object,
    version: str = "1",
    effects: bool = True,
    repeat: Repeat | str | None = None,
    verify: Callable[..., Any] | None = None,
    timeout: float = 30.0,
    name: str | None = None,
    inline: bool = False,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function, sync or async.

    A first parameter annotated `ToolContext` is filled in and hidden from the model; the docstring becomes the
    description. `version` belongs to the stored result: raise it when old results are no longer good. `effects=False`
    says that the tool only reads; with effects, `repeat` is required. `verify` takes the tool's own parameters. A keyed
    or transactional tool takes a context, else it could not pass its key or use its connection. `timeout` is the
    deadline of one attempt in seconds, under 60. `inline` says that the function only computes, in well under a
    millisecond: it is called where its caller runs, without the thread that every other tool has, so nothing else
    moves meanwhile and its deadline is looked at when it returns. It cannot be async, nor have effects.

    Raises:
        ToolDeclarationError: the declaration or the signature is not safe or not complete; says what to change.
    """

    if misplaced:
        _refuse_bare(misplaced[0])

    def register(function: Callable[..., Any]) -> Tool:
        label = name or str(getattr(function, "__name__", ""))
        _check_name(label)
        kind = _check_repeat(label, effects, repeat, verify)
        _check_body(label, function, kind, timeout, version)
        _check_inline(label, function, inline, effects)
        signature = read_signature(label, function, ToolContext)
        _check_context(label, kind, signature)
        _check_verify(label, verify, signature)
        return Tool(
            name=label,
            version=version,
            description=_description(label, function),
            function=function,
            repeat=kind,
            effects=effects,
            timeout=timeout,
            signature=signature,
            verify=verify,
            inline=inline,
        )

    return register


def _refuse_bare(function: object) -> None:
    label = getattr(function, "__name__", repr(function)[:80])
    raise ToolDeclarationError(
        f"Tool {label!r}: @tool stands without its declaration. Write @tool(effects=False) for one that only reads, or "
        "@tool(repeat=Repeat...) to say why it is safe to repeat.",
        field="function",
    )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ToolDeclarationError(
            f"Tool name {name!r} is not usable: lower-case letters, digits, underscores, a letter first, at most 64. "
            "Rename the function or pass name='...'.",
            field="name",
        )
    if name in RESERVED:
        raise ToolDeclarationError(f"Tool name {name!r} is reserved. Pass another name='...'.", field="name")


def _check_repeat(name: str, effects: bool, repeat: Repeat | str | None, verify: Any) -> Repeat:
    kinds = ", ".join(f"Repeat.{kind.name}" for kind in Repeat)
    if repeat is None and effects:
        raise ToolDeclarationError(
            f"Tool '{name}' has effects and does not say how it is safe to repeat. Pass repeat= one of {kinds}, "
            "or effects=False if it only reads.",
            field="repeat",
        )
    if repeat is not None and repeat not in tuple(Repeat):
        raise ToolDeclarationError(
            f"Tool '{name}': repeat={repeat!r} is not known. Pass one of {kinds}.", field="repeat"
        )
    kind = Repeat(repeat) if repeat is not None else Repeat.IDEMPOTENT
    if not effects and kind is not Repeat.IDEMPOTENT:
        raise ToolDeclarationError(
            f"Tool '{name}' says effects=False and repeat={kind.value}. Drop one of the two.", field="repeat"
        )
    if (kind is Repeat.VERIFY) != (verify is not None):
        raise ToolDeclarationError(
            f"Tool '{name}': verify= and repeat=Repeat.VERIFY belong together. Pass both or neither.", field="verify"
        )
    return kind


def _check_body(name: str, function: Callable[..., Any], kind: Repeat, timeout: float, version: str) -> None:
    if not isinstance(version, str) or not version.strip():
        raise ToolDeclarationError(
            f"Tool '{name}': version={version!r} is blank. Pass a text, as in '1'.", field="version"
        )
    if not 0 < timeout < DEADLINE_LIMIT:
        raise ToolDeclarationError(
            f"Tool '{name}': timeout={timeout} is not over 0 and under {DEADLINE_LIMIT:g} seconds, the time an attempt "
            "has as a whole. Pass a shorter one, or split the work.",
            field="timeout",
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDeclarationError(f"Tool '{name}' yields. Return one result, a list for example.", field="function")
    if kind is Repeat.TRANSACTIONAL and not inspect.iscoroutinefunction(function):
        raise ToolDeclarationError(
            f"Tool '{name}' is transactional and not `async def`. Its connection is an async one: make it async.",
            field="function",
        )


def _check_inline(name: str, function: Callable[..., Any], inline: bool, effects: bool) -> None:
    if inline and (effects or inspect.iscoroutinefunction(function)):
        raise ToolDeclarationError(
            f"Tool '{name}' is inline, and {'has effects' if effects else 'is async'}. Only a plain function that "
            "computes may be: pass effects=False and write `def`, or leave inline out.",
            field="inline",
        )


def _check_context(name: str, kind: Repeat, signature: Signature) -> None:
    use = {Repeat.KEYED: "pass on ctx.key", Repeat.TRANSACTIONAL: "write through ctx.connection"}.get(kind)
    if use is not None and not signature.takes_context:
        raise ToolDeclarationError(
            f"Tool '{name}' is {kind.value} and takes no context, so it cannot {use}. Add a first parameter "
            "`ctx: ToolContext`.",
            field="function",
        )


def _check_verify(name: str, verify: Callable[..., Any] | None, signature: Signature) -> None:
    if verify is None:
        return
    first = (None,) if signature.takes_context else ()
    try:
        inspect.signature(verify).bind(*first, **dict.fromkeys(signature.names))
    except (TypeError, ValueError) as error:
        own = ", ".join((*(["ctx"] if first else []), *signature.names)) or "none"
        raise ToolDeclarationError(
            f"Tool '{name}': verify= cannot be called as the tool is ({error}). Give it the tool's own parameters: "
            f"{own}.",
            field="verify",
        ) from None


def _description(name: str, function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function) or ""
    if not text.strip():
        raise ToolDeclarationError(
            f"Tool '{name}' has no docstring. The model chooses by it: say what the tool does and returns.",
            field="description",
        )
    return text.strip()
