"""What a free tree asks and calls, as activities with the paths of its nodes.

Asks of several agents run side by side, so the transcript may have gaps while they do; an agent's own messages have
none. Where an ask ends without an answer, notes stand at its positions, and they are rows before that agent is asked
again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from casework.durable import contracts, policies
from casework.durable.contracts import ModelCall, ModelReply, Say, ToolCall, ToolReply
from casework.durable.workflows.failures import StepFailedError
from casework.durable.workflows.journal import now
from casework.durable.workflows.shell import RunFile, is_unwinding
from casework.durable.workflows.tree_room import Room
from casework.errors import FatalError, GivenUpError, InputError, ToldError
from casework.projection import MessageEntry, StepEntry
from casework.tasktree import Commander, Job, current_node
from casework.trees.bundle import PinnedTree
from casework.trees.context import TreeCalls
from casework.values import dumps

NODE_NAME = 200
"""Characters of a Job's name on a run's row and its steps."""
TURN = 1
"""The turn of a tree's steps: it has no turns of one agent, so all is one."""


@dataclass(frozen=True)
class _Ask:
    """One ask: where it is in the tree, and where its messages go."""

    path: str
    agent: str
    own: int
    say: Say
    position: int


class DurableCalls(TreeCalls):
    """The TreeContext of a run. `stop` ends the run by a fault that its tree may not pass over."""

    def __init__(self, file: RunFile, pinned: PinnedTree, stop: Callable[[str], None]) -> None:
        super().__init__(file.start.input, pinned.agents)
        self._file = file
        self._pinned = pinned
        self._stop = stop
        self.room = Room(pinned.max_events)
        self._own: Counter[str] = Counter()
        self._noted: defaultdict[str, int] = defaultdict(int)
        self._place = pinned.name
        self._tree: Commander | None = None

    async def asked(self, agent: str, words: str) -> Any:
        """One model call, and what it says."""
        self._check_tree()
        journal = self._file.journal
        async with self.room.for_call(len(words)):
            self._check_length()
            if journal.outbox.confirmed < self._noted[agent]:
                await self._file.operations.flush()
            say, own = Say(journal.next_position(), words), self._own[agent] + 1
            ask = _Ask(current_node().path, agent, own, say, journal.next_position())
            self._own[agent] = own + 1
            try:
                reply = await self._send(ask)
            except BaseException as error:
                if not is_unwinding():
                    self._leave_no_hole(ask, error)
                if isinstance(error, StepFailedError):
                    self._give_up(ask.path, error)
                raise
        if reply.requests:
            self._refuse(ask, reply)
        return reply.output

    async def _send(self, ask: _Ask) -> ModelReply:
        file, node = self._file, self._node()
        return await file.operations.execute(
            contracts.CALL_MODEL,
            ask.path,
            "model",
            policies.MODEL,
            ModelReply,
            lambda entries: ModelCall(
                owner=file.operations.owner,
                path=ask.path,
                workflow=self._pinned.name,
                workflow_version=file.start.workflow_version,
                node=node,
                agent=ask.agent,
                turn=TURN,
                up_to=ask.say.position,
                position=ask.position,
                say=(ask.say,),
                model=file.start.model,
                outbox=entries,
                own=ask.own,
            ),
        )

    async def called(self, name: str, arguments: dict[str, Any]) -> Any:
        """One tool call, and its result."""
        self._check_tree()
        async with self.room.for_call(len(dumps(arguments))):
            self._check_length()
            path = current_node().path
            try:
                reply = await self._act(path, name, arguments)
            except StepFailedError as error:
                self._give_up(path, error)
        if reply.state == "FAILED":
            raise ToldError(reply.error or f"tool {name} failed")
        return reply.result

    async def _act(self, path: str, name: str, arguments: dict[str, Any]) -> ToolReply:
        file, node = self._file, self._node()
        try:
            return await file.operations.execute(
                contracts.CALL_TOOL,
                path,
                name,
                policies.TOOL,
                ToolReply,
                lambda entries: ToolCall(
                    owner=file.operations.owner,
                    path=path,
                    workflow=self._pinned.name,
                    workflow_version=file.start.workflow_version,
                    node=node,
                    agent="",
                    turn=TURN,
                    name=name,
                    arguments=arguments,
                    outbox=entries,
                    literal=True,
                ),
            )
        except BaseException as error:
            if not is_unwinding():
                self._close(path, "tool", name, error)
            raise

    # ---- what goes wrong

    def _give_up(self, path: str, error: StepFailedError) -> NoReturn:
        if error.fatal:
            self._stop(str(error))
            raise FatalError(str(error)) from error
        raise GivenUpError(path, error.reason) from error

    def _check_tree(self) -> None:
        """That the path is the run's: a Commander within the tree counts anew, and gives the same paths."""
        node = current_node()
        if self._tree is None:
            self._tree = node.commander
        if node.commander is not self._tree:
            raise InputError(
                f"{node.path}: asks and calls of a run come from nodes of its own tree, and this one is of another "
                "Commander's. Submit and call below the nodes of the tree instead of running a Commander in it.",
                field="ctx",
            )

    def _check_length(self) -> None:
        full = self.room.full()
        if full is not None:
            fault = f"{current_node().path}: {full}"
            self._file.journal.event("", "agent.history_limit", {"reason": full})
            self._stop(fault)
            raise FatalError(fault)

    def _leave_no_hole(self, ask: _Ask, error: BaseException) -> None:
        """Where the ask would have written, notes say why it did not; its late answer is no longer taken."""
        self._close(ask.path, "model", "model", error)
        reason = error.reason if isinstance(error, StepFailedError) else "it was ended"
        for position in (ask.say.position, ask.position):
            note = f"no message: the model call failed ({reason})"
            self._file.journal.add(MessageEntry(ask.path, position, ask.agent, "note", note, now()))
        self._noted[ask.agent] = self._file.journal.outbox.last

    def _close(self, path: str, kind: Any, name: str, error: BaseException) -> None:
        """A step that its tree ended in flight has no result any more. One that was given up is closed already."""
        if not isinstance(error, StepFailedError):
            self._file.journal.add(StepEntry(path, kind, name, "FAILED", now(), error="ended by its tree or its run"))

    def _refuse(self, ask: _Ask, reply: ModelReply) -> NoReturn:
        """An answer that asks for tools: each is told that it was not called, so that the transcript goes on well."""
        journal = self._file.journal
        for request in reply.requests:
            content = dumps({"error": "not called: there are no tools here. Answer without one."})
            position, at = journal.next_position(), now()
            told = MessageEntry(ask.path, position, ask.agent, "tool", content, at, request.call_id, request.name)
            journal.add(told)
            self._own[ask.agent] += 1
        self._noted[ask.agent] = journal.outbox.last
        names = ", ".join(dict.fromkeys(request.name for request in reply.requests))
        raise GivenUpError(
            ask.path, f"the model asked for tools ({names:.200}) and got none: a tree calls tools itself"
        )

    def _node(self) -> str:
        """The nearest Job's name; the run's row follows it, together with a step that is sent anyway."""
        jobs = (node.name for node in current_node().ancestor_chain if isinstance(node, Job))
        name = next(jobs, self._pinned.name)[:NODE_NAME]
        if name != self._place:
            self._place = name
            self._file.journal.enter(name, TURN, 0)
            self._file.journal.run("RUNNING")
        return name
