"""Writing a tree down: `@free_tree` on an async function, or on a Job class, of a module."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from casework.errors import TreeDeclarationError
from casework.tasktree import Commander, Job, TaskNode, handler
from casework.trees.context import TreeContext

Function = Callable[[Any], Coroutine[Any, Any, Any]]
Body = Function | type[Any]

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
MAX_EVENTS = 10_000
"""Events of a history after which a tree is stopped, unless it says another number: so many a worker that takes the run
over reads again within seconds."""
MOST_EVENTS = 45_000
"""The engine ends a run at 51,200, and calls in flight end first."""


@dataclass(frozen=True, eq=False)
class FreeTree:
    """A registered tree. `App(trees=[...])` takes it; calling it calls what it was made from."""

    name: str
    version: int
    body: Body
    agents: tuple[Any, ...] = ()
    providers: tuple[Any, ...] = ()
    input_schema: Mapping[str, Any] | None = None
    max_events: int = MAX_EVENTS

    def __call__(self, ctx: TreeContext) -> Any:
        """Call the function, or make the Job, as it was written; for use inside a tree of another."""
        return self.body(ctx)

    @property
    def module(self) -> str:
        """The module it was written in."""
        return self.body.__module__

    def job(self, ctx: TreeContext) -> Job:
        """The top Job of a run, named as the tree is. A function runs outside the queue, so it may await Jobs."""
        if isinstance(self.body, type):
            job: Job = self.body(ctx)
            return job.named(self.name)
        return _Top(self.name, self.body, ctx)

    async def run(self, ctx: TreeContext, **commander: Any) -> Any:
        """Run it plainly, on a Commander of its own, made with `commander`; returns its result.

        Raises:
            NodeFailedError: an error that nobody handled; `path` names its node, `__cause__` is the error.
        """
        return await Commander(**commander).run(self.job(ctx))

    def place(self) -> tuple[str, str]:
        """Module and attribute under which a worker finds it.

        Raises:
            TreeDeclarationError: it has no such place, as in a function or in a script that is run.
        """
        module = sys.modules.get(self.module)
        names = [name for name, value in vars(module).items() if value is self] if module is not None else []
        if not names or self.module == "__main__":
            raise TreeDeclarationError(
                f"Free tree {self.name!r} cannot be found again as an attribute of module {self.module!r}, where a "
                "worker looks for it. Write it at the top of a module that can be imported."
            )
        return self.module, names[0]


class _Top(Job):
    """The function of a tree as its top node."""

    def __init__(self, name: str, body: Function, ctx: TreeContext) -> None:
        super().__init__(name)
        self._body, self._ctx = body, ctx

    async def task(self) -> TaskNode:
        """Go on outside the queue."""
        return self._work()

    @handler
    async def _work(self) -> Any:
        return await self._body(self._ctx)


def free_tree(
    name: str,
    *,
    version: int,
    agents: Iterable[Any] = (),
    providers: Iterable[Any] = (),
    input: Mapping[str, Any] | None = None,  # noqa: A002  # the name that it has in a run
    max_events: int = MAX_EVENTS,
) -> Callable[[Body], FreeTree]:
    """Make a free tree of an `async def` function that takes a TreeContext, or of a Job class that is made with one.

    `agents` and `providers` are manifests, or files of manifests, as an App takes them: those whom the tree may ask.
    `version` counts from 1: raise it when the code no longer makes the same calls in the same order, and keep the old
    version registered until its runs have ended. `input` is a JSON Schema of the run's input. `max_events` is the
    length of its history in the engine at which a run is stopped, at most 45,000: a call takes three to six.

    Raises:
        TreeDeclarationError: the declaration does not hold; says what to change.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise TreeDeclarationError(
            f"{name!r:.100} is no name of a free tree. Use up to 63 lower-case letters, digits and inner dashes."
        )
    if type(version) is not int or not 1 <= version < 2**31:
        raise TreeDeclarationError(f"Free tree {name!r}: version {version!r:.50} is no whole number from 1 on.")
    if type(max_events) is not int or not 1 <= max_events <= MOST_EVENTS:
        raise TreeDeclarationError(f"Free tree {name!r}: max_events is {max_events!r:.50}, not 1 to {MOST_EVENTS:,}.")

    def make(body: Body) -> FreeTree:
        if not (inspect.iscoroutinefunction(body) or (isinstance(body, type) and issubclass(body, Job))):
            raise TreeDeclarationError(
                f"Free tree {name!r}: {body!r:.100} is neither an `async def` function nor a Job class. Write one."
            )
        return FreeTree(name, version, body, _many(agents), _many(providers), input, max_events)

    return make


def _many(sources: Any) -> tuple[Any, ...]:
    """What was given as a tuple; one file, by its path, counts as one."""
    return (sources,) if isinstance(sources, str) or not isinstance(sources, Iterable) else tuple(sources)
