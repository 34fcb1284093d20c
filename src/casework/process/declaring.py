"""`@bot_task`: a class becomes a Task of a process, with a name that stays when the class is renamed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from casework.agents.tools import Repeat
from casework.errors import ProcessDeclarationError
from casework.process.policies import ErrorPolicy
from casework.process.tasks import AgentTask, Kind, PlainTask, Task

RESERVED = ("monitor", "finalizer", "end")
"""Stations of every line; no task can be named so."""
TIMEOUT_LIMIT = 3600.0
"""Longest deadline of one Transaction in one task, in seconds."""
LEAST_PER_SECOND, MOST_PER_SECOND = 1 / 3600, 1000.0
"""Bounds of `max_per_second`: one Transaction an hour, and more than a server of the engine hands out."""
_SPEC = "__bot_task__"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,55}")
T = TypeVar("T", bound=Task)


@dataclass(frozen=True)
class TaskSpec:
    """A registered Task. `repeat` is why a plain one is safe to repeat, None for kinds that are so by themselves.

    `computes`: it is a plain one that has no effects. `max_per_second`: how many Transactions all workers together may
    begin on in a second; None: as many as they can.
    """

    name: str
    cls: type[Task]
    kind: Kind
    version: str = "1"
    repeat: Repeat | None = None
    timeout: float = 60.0
    max_per_second: float | None = None
    errors: ErrorPolicy | None = None
    computes: bool = False

    @property
    def alone(self) -> bool:
        """Whether it can only work in a process whose trays hold one Transaction."""
        return self.kind in (Kind.AGENT, Kind.MANUAL)


def bot_task(
    name: str,
    *,
    effects: bool = True,
    repeat: Repeat | str | None = None,
    version: str = "1",
    timeout: float = 60.0,
    max_per_second: float | None = None,
    errors: ErrorPolicy | None = None,
) -> Callable[[type[T]], type[T]]:
    """Register a class of one of the kinds in `casework.process.tasks` under a stable `name`.

    A plain Task with effects says by `repeat` why it is safe to repeat, as a tool does; `effects=False` says that it
    has none at all: it only computes, or reads, and is done again where nobody knows whether it was. `version` belongs
    to the stored result. `timeout` is the deadline for one Transaction, in seconds. `max_per_second` is how many
    Transactions all workers together may begin on in a second, in all processes that have a Task of this name; it holds
    on the engine alone. `errors` goes before the policies of process and project.

    Raises:
        ProcessDeclarationError: the class or its declaration does not hold; says what to change.
    """

    def register(cls: type[T]) -> type[T]:
        _check_name(name)
        _check_class(name, cls)
        kind = _check_repeat(name, cls, effects, repeat)
        if not 0 < timeout <= TIMEOUT_LIMIT:
            raise _refused(name, f"timeout is {timeout!r}. Give seconds above 0, at most {TIMEOUT_LIMIT:.0f}.")
        rate = _checked_rate(name, max_per_second)
        if not isinstance(version, str) or not version.strip():
            raise _refused(name, f"version is {version!r}. Give a text, as in version='2'.")
        setattr(cls, _SPEC, TaskSpec(name, cls, cls.kind, version, kind, timeout, rate, errors, not effects))
        return cls

    return register


def spec_of(cls: Any) -> TaskSpec:
    """How the class was registered.

    Raises:
        ProcessDeclarationError: it was not.
    """
    found = vars(cls).get(_SPEC) if isinstance(cls, type) else None
    if not isinstance(found, TaskSpec):
        if isinstance(vars(type(cls)).get(_SPEC), TaskSpec):
            name = type(cls).__name__
            raise ProcessDeclarationError(
                f"an object of {name} is given. Give the class itself: {name}.", field="tasks"
            )
        shown = cls.__name__ if isinstance(cls, type) else repr(cls)[:80]
        raise ProcessDeclarationError(f'{shown} is no Task. Decorate its class with @bot_task("name").', field="tasks")
    return found


def is_task(cls: Any) -> bool:
    """Whether it is a class that was registered by `bot_task`."""
    return isinstance(cls, type) and _SPEC in vars(cls)


def checked_label(what: str, name: object) -> str:
    """`name` if it can name a process, task or monitor.

    Raises:
        ProcessDeclarationError: it cannot.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ProcessDeclarationError(
            f"{what} name {name!r:.80} is not usable: lower-case letters, digits, - and _, a letter first, at most 56. "
            'Write one that stays, as in "check-amount".',
            field="name",
        )
    return name


def _check_name(name: object) -> None:
    if checked_label("Task", name) in RESERVED:
        raise ProcessDeclarationError(f"Task name {name!r} is a station of every line. Choose another.", field="name")


def _check_class(name: str, cls: type[Any]) -> None:
    if not isinstance(cls, type) or not issubclass(cls, Task) or not hasattr(cls, "kind"):
        kinds = ", ".join(each.__name__ for each in _kinds())
        raise _refused(
            name, f"{getattr(cls, '__name__', cls)!s:.80} derives from no kind of Task. Take one of {kinds}."
        )
    if missing := sorted(getattr(cls, "__abstractmethods__", ())):
        raise _refused(
            name, f"class {cls.__name__} lacks {', '.join(missing)}. Write {'them' if missing[1:] else 'it'}."
        )
    for method, base in inspect.getmembers(_base(cls), inspect.iscoroutinefunction):
        own = getattr(cls, method)
        if not inspect.iscoroutinefunction(own):
            raise _refused(name, f"{method} of class {cls.__name__} is not async. Write `async def {method}(...)`.")
        _check_parameters(name, cls, method, base)
    limit = getattr(cls, "longest_wait", None)
    if limit is not None and not (isinstance(limit, timedelta) and limit > timedelta(0)):
        raise _refused(name, f"longest_wait is {limit!r:.60}. Give a timedelta above 0, or None for no limit.")
    if issubclass(cls, AgentTask) and not getattr(cls, "workflow", ""):
        raise _refused(name, f"class {cls.__name__} names no workflow. Add a line like workflow = 'loan-underwriting'.")


def _check_parameters(name: str, cls: type[Task], method: str, base: Callable[..., Any]) -> None:
    wanted = [each for each in inspect.signature(base).parameters if each != "self"]
    try:
        inspect.signature(getattr(cls, method)).bind(None, *wanted)
    except TypeError:
        raise _refused(
            name,
            f"{method} of class {cls.__name__} takes other parameters. Write `{method}(self, {', '.join(wanted)})`.",
        ) from None


def _kinds() -> list[type[Task]]:
    return Task.__subclasses__()


def _base(cls: type[Task]) -> type[Task]:
    """The kind that the class derives from."""
    return next(each for each in cls.__mro__ if each in _kinds())


def _check_repeat(name: str, cls: type[Task], effects: bool, repeat: Repeat | str | None) -> Repeat | None:
    if not issubclass(cls, PlainTask):
        if repeat is not None or not effects:
            raise _refused(name, f"a {cls.kind} Task is safe to repeat by its kind. Leave out `repeat` and `effects`.")
        return None
    kinds = ", ".join(f"Repeat.{kind.name}" for kind in Repeat if kind is not Repeat.TRANSACTIONAL)
    if not effects and repeat is None:
        return Repeat.IDEMPOTENT
    try:
        found = Repeat(repeat) if effects and repeat is not None else None
    except ValueError:
        found = None
    if found is None or found is Repeat.TRANSACTIONAL:
        raise _refused(
            name,
            f"repeat is {repeat!r} with effects={effects}. Say with one of {kinds} why it is safe to repeat; say "
            "effects=False alone if it has no effects; make it a TransactionalTask if it only works in the database.",
        )
    if found is Repeat.VERIFY and cls.verify is PlainTask.verify:
        raise _refused(name, f"repeat is verify, and class {cls.__name__} has no `verify`. Write it.")
    return found


def _checked_rate(name: str, rate: object) -> float | None:
    if rate is None:
        return None
    if isinstance(rate, (int, float)) and not isinstance(rate, bool) and LEAST_PER_SECOND <= rate <= MOST_PER_SECOND:
        return float(rate)
    raise _refused(
        name,
        f"max_per_second is {rate!r:.60}. Give a number of Transactions a second, from 1/3600 (one an hour) to "
        f"{MOST_PER_SECOND:.0f}, or leave it out for no limit.",
    )


def _refused(name: str, what: str) -> ProcessDeclarationError:
    return ProcessDeclarationError(f"Task '{name}': {what}", field="task")
