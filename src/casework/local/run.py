"""A local run: the walk through a graph, or a free tree, from input to end."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from casework import ids
from casework.errors import FatalError, InputError
from casework.graph import commands, engine, tracing
from casework.graph.bundle import PinnedWorkflow
from casework.graph.json_schemas import misfits
from casework.graph.tracing import TraceStep
from casework.local.calls import Calls
from casework.local.house import House, LocalEnd
from casework.local.visits import LocalFile
from casework.tasktree import Commander, NodeFailedError, NodeTerminatedError, submit
from casework.trees.bundle import Pinned, PinnedTree, pinned_from_plain
from casework.trees.local import LocalContext
from casework.values import Plain

_ENDS = (commands.Complete, commands.Fail)


async def run_local(
    house: House, pinned: Pinned, given: Mapping[str, Plain], run_id: UUID | None = None, within: str = ""
) -> LocalEnd:
    """Run a workflow or free tree in memory to its end. `within` is the path of the node that started it.

    Raises:
        InputError: `given` does not fit the input schema, or nobody is there to decide.
    """
    if pinned.input_schema is not None and (found := misfits(pinned.input_schema, dict(given), limit=1)):
        raise InputError(f"input{'.' if found[0].field else ''}{found[0].field}: {found[0].message}", field="input")
    owner = run_id or uuid4()
    if isinstance(pinned, PinnedTree):
        return await _tree(house, pinned, given)
    return await _Walk(house, pinned, given, owner, within).to_end()


class _Walk:
    """One run of a graph.

    No driver waits for the visits: each, when it is over, goes on to the next. So a step costs one Job, and no wait.
    """

    def __init__(
        self, house: House, pinned: PinnedWorkflow, given: Mapping[str, Plain], run_id: UUID, within: str
    ) -> None:
        calls = Calls(house.tools, run_id, given, house.policies)
        self._house = house
        self._pinned = pinned
        self._given = dict(given)
        self._run_id = run_id
        self._within = within
        self._spec = pinned.workflow.spec
        self._file = LocalFile(house, pinned, run_id, calls, self._sub_run, self._over)
        self._trace: list[TraceStep] = []
        self._subs: dict[str, LocalEnd] = {}
        self._fault: FatalError | None = None
        self._error: BaseException | None = None

    async def to_end(self) -> LocalEnd:
        """Walk; a fault that no edge may catch ends the run FAILED."""
        self._file.place, self._command = engine.start(self._spec, self._given, turn_limit=self._house.turn_limit)
        self._tree = Commander(isolate=True)  # a visit that failed is an outcome; it is drawn as what it is
        async with self._tree:
            self._context = contextvars.copy_context()
            self._submit()
        return self._end()

    def _submit(self) -> None:
        command = self._command
        if not isinstance(command, _ENDS):
            # Not in the context of the visit before, which may have set variables.
            self._context.run(submit, self._file.visit(command))

    def _over(self, command: commands.Due, outcome: commands.Outcome | BaseException | None) -> None:
        """Take the outcome of the visit that is due, and go on to the next; an error ends the run."""
        if outcome is None or isinstance(outcome, BaseException):
            self._spoilt(outcome)
            return
        try:
            for step in tracing.steps(command, outcome):
                self._trace.append(step)
                self._house.told(self._within, step)
            self._file.place, self._command = engine.advance(self._spec, self._file.place, outcome)
            self._submit()
        except BaseException as error:  # noqa: BLE001  # raised where the run ends, and not in a visit that is over
            self._error = error

    def _spoilt(self, error: BaseException | None) -> None:
        if isinstance(error, FatalError):
            self._fault = error
        else:
            self._error = error

    def _end(self) -> LocalEnd:
        command, common = self._command, self._common()
        if isinstance(command, commands.Complete):
            return LocalEnd("COMPLETED", command.outcome, command.output, **common)
        if isinstance(command, commands.Fail):
            return LocalEnd("FAILED", reason=command.told, **common)
        if self._fault is not None:
            return LocalEnd("FAILED", reason=str(self._fault), **common)
        raise self._error or NodeTerminatedError(f"{tracing.path_of(command)} was terminated and has no outcome.")

    def _common(self) -> dict[str, Any]:
        return {"state": self._file.place, "trace": tuple(self._trace), "tree": self._tree, "subs": self._subs}

    async def _sub_run(self, name: str, given: Mapping[str, Plain], path: str) -> LocalEnd:
        """A run of its own, with a tree of its own."""
        pinned = pinned_from_plain(self._pinned.sub_bundle(name))
        within = f"{self._within}{' > ' if self._within else ''}{path}"
        run = run_local(self._house, pinned, given, ids.sub_run_id(self._run_id, path), within)
        end = await asyncio.create_task(run, context=contextvars.Context())
        self._subs[path] = end
        return end


async def _tree(house: House, pinned: PinnedTree, given: Mapping[str, Plain]) -> LocalEnd:
    tree = house.trees.get((pinned.name, pinned.version))
    if tree is None:
        raise FatalError(f"free tree {pinned.name!r} in version {pinned.version} is not among those of the App")
    models = {name: house.model_of(agent, pinned.providers) for name, agent in pinned.agents.items()}
    context = LocalContext(given, models, house.tools, pinned.agents.values())
    commander = Commander()
    try:
        output = await commander.run(tree.job(context))
    except NodeFailedError as error:
        return LocalEnd("FAILED", reason=str(error), tree=commander)
    return LocalEnd("COMPLETED", output=output, tree=commander)
