"""A group talk: whoever begins to speak first has the floor, the others are told so and listen.

How it moves. `TalkToAll` delivers one reply: it lets it be heard to the end, sends it to every role, and hands their
lazy replies to `handle_response`. That starts `parse_stream_response` for each, all at once. The first that begins to
speak takes the floor: its reply becomes the next `TalkToAll`, which hangs on `GroupTalkManager`, not below the round it
came from. So a talk of any length is a flat tree. The next round asks nobody before this one has heard from all.

A role that fails is silent in that round. The talk ends when nobody has anything to say, at the round limit, or by
`close_group_talk`. Uses the tree and its voices alone: no clock, no chance, no thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from casework.examples.group_talk.parts import Heard, Line, Reply, Role, Voices, spoken
from casework.tasktree import (
    HandlerNode,
    Job,
    NoCurrentNodeError,
    NodeState,
    TaskNode,
    call,
    current_node,
    handler,
    submit,
)

N = TypeVar("N", bound=TaskNode)
ROUNDS = 20
"""Replies after the opening, at most."""
NOBODY = "nobody has anything to say"
TOOK, PASSED, LATE = "takes the floor", "nothing to say", "the talk is closed"


class NobodyAnswersError(Exception):
    """Every role that was asked in a round failed, so there is no talk to go on with."""


class GroupTalkManager(Job):
    """The top of a talk. Its result is the minutes: every line, the opening first.

    Args:
        voices: who answers for the roles.
        opening: what the chair says first.
        rounds: replies after the opening, at most.
        chair: the name under which the opening is heard.
        hear: told each piece of what is said, as it is said: the speaker and the piece, which is empty at the end.
        patience: seconds that a role has to begin; one that has not fails in that round. None: as long as it takes.

    Raises:
        ValueError: a blank opening, or a negative number of rounds.
    """

    def __init__(
        self,
        voices: Voices,
        opening: str,
        *,
        rounds: int = ROUNDS,
        chair: str = "Chair",
        hear: Callable[[str, str], object] | None = None,
        patience: float | None = None,
    ) -> None:
        super().__init__()
        if rounds < 0:
            raise ValueError(f"rounds is {rounds}. Give the number of replies after the opening, 0 or more.")
        if not opening.strip():
            raise ValueError("The opening is blank. Say what the talk is about.")
        self.voices = voices
        self.opening = opening
        self.rounds = rounds
        self.chair = chair
        self.hear = hear
        self.patience = patience
        self.roles_list: list[Role] = []
        self.speaking: str | None = None
        self.minutes: list[Line] = []
        self.failures: list[tuple[int, str, str]] = []
        """Round, role and error of each reply that failed."""
        self.end_reason: str | None = None
        """Why the talk ended; None while it goes on."""

    def create_role(self, name: str, brief: str = "") -> Role:
        """A further role. One that joins in mid-talk hears all that was said before.

        Raises:
            ValueError: the name is blank, or taken.
        """
        if not name.strip():
            raise ValueError(f"{name!r} cannot name a role. Give it a name that can be read.")
        if name == self.chair or any(role.name == name for role in self.roles_list):
            raise ValueError(f"There is a role {name!r} already. Each needs a name of its own.")
        role = Role(name, brief)
        self.roles_list.append(role)
        return role

    async def task(self) -> list[Line]:
        """Open the talk."""
        if self.end_reason is None:
            self.give_floor(Reply(self.chair, spoken(self.opening)), 0, None)
        return self.minutes

    async def close_group_talk(self, reason: str = "closed") -> None:
        """End the talk now: nobody is asked any more, who is speaking breaks off, replies under way are closed.

        Called from inside the talk it does not return: the caller is a part of what ends.
        """
        self.end_reason = self.end_reason or reason
        try:
            own = current_node().ancestor_chain
        except NoCurrentNodeError:
            own = ()
        rounds = [node for node in self.children if node.state is NodeState.ACTIVE]
        for node in sorted(rounds, key=lambda each: each in own):  # the caller's own last: it cuts the caller off
            await node.terminate()
        self.speaking = None

    # ---- for the rounds

    def give_floor(self, reply: Reply, number: int, after: TaskNode | None) -> None:
        """`reply` is what is said in round `number`."""
        self.speaking = reply.speaker
        for role in self.roles_list:
            role.spoke = number if role.name == reply.speaker else role.spoke
        submit(TalkToAll(reply, number, after), parent=self)

    def ask(self, role: Role) -> Reply:
        """The lazy reply of `role` to what it has not heard yet."""
        heard: Heard = role.hears(self.minutes)
        return Reply(role.name, self.voices.reply(role, heard))

    def patient(self, node: HandlerNode[str]) -> HandlerNode[str]:
        """`node` with the time that a role has to begin."""
        return node if self.patience is None else node.within(self.patience)

    def let_hear(self, speaker: str, piece: str) -> None:
        """Pass on what is being said."""
        if self.hear is not None:
            self.hear(speaker, piece)

    def failed(self, number: int, role: str, error: BaseException) -> str:
        """Note that a role failed."""
        self.failures.append((number, role, f"{type(error).__name__}: {error}"))
        return f"failed: {self.failures[-1][2]}"


class TalkToAll(Job):
    """One round: `reply` is heard, sent to every role, and answered. Its result says how each took it, by role."""

    def __init__(self, reply: Reply, number: int, after: TaskNode | None) -> None:
        super().__init__()
        self.reply = reply
        self.number = number
        self._after = after
        self._broke_off = False

    async def task(self) -> HandlerNode[dict[str, str]]:
        """Go on outside the queue: a reply takes its time."""
        return self.pass_on()

    @handler
    async def pass_on(self) -> dict[str, str]:
        """Let the reply be heard, send it to every role, and hand their replies on."""
        manager = manager_of_talk()
        await self._listen(manager)
        if self._after is not None:
            await self._after  # all of the round before have been told who has the floor
            self._after = None  # and so this round does not keep that one, which keeps the one before, and so on
        if self.number >= manager.rounds:
            manager.end_reason = manager.end_reason or f"round limit ({manager.rounds})"
        if manager.end_reason is not None:
            manager.speaking = None
            return {}
        # Who has waited longest begins first, and who just spoke last: where all are quick, all get a turn.
        replies = {role.name: manager.ask(role) for role in sorted(manager.roles_list, key=lambda each: each.spoke)}
        manager.speaking = None
        return await handle_response(replies)

    async def _listen(self, manager: GroupTalkManager) -> None:
        """Let the reply be heard and write it down, as far as it comes."""
        said: list[str] = []
        whole = False
        words = self.reply.words()
        try:
            while (piece := await self._next(words, manager)) is not None:
                if piece:
                    said.append(piece)
                    manager.let_hear(self.reply.speaker, piece)
            whole = not self._broke_off
            manager.let_hear(self.reply.speaker, "")
        finally:
            manager.minutes.append(Line(self.reply.speaker, "".join(said).strip(), self.number, not whole))
            await self.reply.aclose()

    async def _next(self, words: AsyncIterator[str], manager: GroupTalkManager) -> str | None:
        """The next piece; None at the end, also where the speaker fails: that is noted, and the talk goes on."""
        try:
            return await anext(words, None)
        except Exception as error:  # noqa: BLE001 - as it says
            manager.failed(self.number, self.reply.speaker, error)
            self._broke_off = True
            return None


@handler
async def handle_response(replies: dict[str, Reply]) -> dict[str, str]:
    """Listen to all replies at once. Says how each came out, by role: the floor, denied, nothing to say, failed."""
    manager, number = manager_of_talk(), round_of_talk().number
    nodes = {name: call(manager.patient(parse_stream_response(reply))) for name, reply in replies.items()}
    outcome: dict[str, str] = {}
    errors: list[BaseException] = []
    for name, node in nodes.items():
        try:
            outcome[name] = await node
        except Exception as error:  # noqa: BLE001 - a role that fails is silent; the others go on
            outcome[name] = manager.failed(number, name, error)
            errors.append(error)
    if errors and len(errors) == len(nodes):
        who = ", ".join(nodes)
        raise NobodyAnswersError(f"None of {who} could answer. The last {outcome[name]}") from errors[-1]
    if manager.speaking is None:
        manager.end_reason = manager.end_reason or NOBODY
    return outcome


@handler
async def parse_stream_response(reply: Reply) -> str:
    """Wait until the role begins to speak: it takes the floor if it is free, else it is told who has it."""
    manager, talk = manager_of_talk(), round_of_talk()
    kept = False
    try:
        if not await reply.begins():
            return PASSED
        if manager.end_reason is not None:
            return LATE
        if manager.speaking is not None:
            next(role for role in manager.roles_list if role.name == reply.speaker).denied_by = manager.speaking
            return f"denied: {manager.speaking} speaks"
        manager.give_floor(reply, talk.number + 1, talk)
        kept = True
        return TOOK
    finally:
        if not kept:
            await reply.aclose()


def manager_of_talk() -> GroupTalkManager:
    """The manager of the talk that the running node belongs to."""
    return _above(GroupTalkManager)


def round_of_talk() -> TalkToAll:
    """The round that the running node belongs to."""
    return _above(TalkToAll)


def _above(kind: type[N]) -> N:
    for node in current_node().ancestor_chain:
        if isinstance(node, kind):
            return node
    raise LookupError(f"No {kind.__name__} is above {current_node()!r}: this runs in a talk only.")
