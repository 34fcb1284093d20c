"""Constructor injection: what a Task's constructor asks for by type is provided by the project's modules.

A module is a `dishka.Provider`. Its scope APP lives as long as the worker (pools, clients), its scope REQUEST as long
as one Task's work; there it can ask for `TaskConnection`. The whole graph is checked before anything starts, so that a
missing provider names its Task then, and not in the middle of a night.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast, get_type_hints

from dishka import AsyncContainer, Provider, Scope, make_async_container
from dishka.exception_base import DishkaError
from dishka.exceptions import NoFactoryError

from casework.errors import FatalError, ProcessDeclarationError
from casework.process.lines import Line

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskConnection:
    """What a repository asks for, to write in the database transaction of the Transaction at hand."""

    lent: Any = None
    """As `ctx.connection`: None for plain, agent and manual Tasks, and for Monitors."""

    @property
    def open(self) -> Any:
        """The open database transaction, with `execute`.

        Raises:
            FatalError: there is none in this Task.
        """
        if self.lent is None:
            raise FatalError(
                "No database transaction is open for this Task. Derive it from TransactionalTask, or from another kind "
                "that has `ctx.connection`. In memory there is none: give a module that provides another repository."
            )
        return self.lent


class Injector:
    """Makes Tasks and Monitors, each with what its constructor asks for. Close it when the worker stops."""

    def __init__(self, container: AsyncContainer) -> None:
        self._container = container

    @asynccontextmanager
    async def made(self, cls: type[T], connection: Any = None) -> AsyncIterator[T]:
        """An object of `cls`; what was made for it alone is released when the block is left.

        `connection` is what a TaskConnection is to hold.
        """
        async with self._container(context={TaskConnection: TaskConnection(connection)}) as scope:
            yield cast("T", await scope.get(cls))

    async def close(self) -> None:
        """Release what lives as long as the worker, in the reverse order of its making."""
        await self._container.close()


def users_of(lines: Iterable[Line]) -> dict[str, type[Any]]:
    """The Tasks and Monitors of lines, and their runners, by what an error calls them."""
    users: dict[str, type[Any]] = {}
    for line in lines:
        monitor = line.process.monitor
        named: dict[str, type[Any]] = {f"Monitor {monitor.monitor_class()!r}": monitor}
        if monitor.runner_class is not None:
            named[f"Runner {monitor.runner_class.__name__!r}"] = monitor.runner_class
        named |= {f"Task {spec.name!r}": spec.cls for spec in line.specs.values()}
        for name, cls in named.items():
            if users.setdefault(name, cls) is not cls:  # two processes may use one name for two classes
                users[f"{name} of process {line.process.name!r}"] = cls
    return users


def injector(users: Mapping[str, type[Any]], modules: Iterable[Provider] = ()) -> Injector:
    """An injector for `users`: classes by what an error calls them, as in `Task 'validate'`.

    Raises:
        ProcessDeclarationError: a provider is missing, a constructor cannot be read, or the modules do not hold
            together; names every user that is at fault.
    """
    given = tuple(modules)
    problems = [*(found for name, cls in users.items() for found in _constructor(name, cls))]
    if not problems:
        try:
            return Injector(make_async_container(*given, _own(*dict.fromkeys(users.values()))))
        except NoFactoryError:
            problems = _missing(users, given)
        except DishkaError as error:
            problems = [f"the modules do not hold together: {error}"]
    raise ProcessDeclarationError("\n".join(problems), field="modules")


def _own(*users: type[Any]) -> Provider:
    """What is provided without a module: the users themselves, and the connection."""
    own = Provider(scope=Scope.REQUEST)
    own.from_context(TaskConnection)
    for cls in users:
        own.provide(cls)
    return own


def _constructor(name: str, cls: type[Any]) -> Iterable[str]:
    """What is wrong with the constructor itself."""
    if cls.__init__ is object.__init__:
        return
    hints = _hints(cls)
    if isinstance(hints, str):
        yield f"{name}: the types of its constructor cannot be read: {hints}. Import them at run time."
        return
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        what = f"{name}: parameter {parameter.name!r} of its constructor"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            if parameter.name not in ("args", "kwargs"):  # those of Protocol and Generic
                yield f"{what} takes any number of things, and none would ever be given. Name them one by one."
        elif parameter.name not in hints:
            yield f"{what} has no type, so nothing can be provided for it. Annotate it."
        elif parameter.default is not parameter.empty:
            yield f"{what} has a default, and nothing else would ever be given. Make it a class attribute."


def _hints(cls: type[Any]) -> dict[str, Any] | str:
    try:
        return get_type_hints(cls.__init__)
    except (NameError, TypeError) as error:
        return str(error)


def _missing(users: Mapping[str, type[Any]], modules: tuple[Provider, ...]) -> list[str]:
    """A line for each user for which something is missing: each is tried alone, as the library tells the first only."""
    problems = [line for name, cls in users.items() if (line := _missing_for(name, cls, modules))]
    return list(dict.fromkeys(problems))


def _missing_for(name: str, cls: type[Any], modules: tuple[Provider, ...]) -> str | None:
    try:
        make_async_container(*modules, _own(cls))
    except NoFactoryError as error:
        wanted = error.requested.type_hint
        between = error.path[0].provides.type_hint if error.path else cls
        through = "" if between is cls else f" (through {_name(between)})"
        if between is not cls and not _asks(cls, between):
            return f"no module provides {_name(wanted)}, which {_name(between)} asks for. Add a provider of it."
        asked = f"{_name(wanted)}, which its constructor asks for{through}"
        return f"{name}: no module provides {asked}. Add a provider of it."
    return None


def _asks(cls: Any, wanted: Any, depth: int = 10) -> bool:
    """Whether the constructor of `cls` asks for `wanted`, itself or by what it asks for."""
    hints = _hints(cls) if isinstance(cls, type) and depth else {}
    if isinstance(hints, str):
        return False
    asked = [hint for key, hint in hints.items() if key != "return"]
    return wanted in asked or any(_asks(each, wanted, depth - 1) for each in asked)


def _name(hint: Any) -> str:
    return getattr(hint, "__qualname__", None) or str(hint)
