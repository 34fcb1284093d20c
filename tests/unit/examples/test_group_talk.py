"""The group talk with roles that a test controls: who gets the floor, who is told so, and how a talk ends."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from casework.examples.group_talk import __main__ as command
from casework.examples.group_talk.application import app, group_talk, scripted_agent
from casework.examples.group_talk.committee import CAST, OPENING, SCRIPTS, seat
from casework.examples.group_talk.parts import Heard, Reply, Role, spoken
from casework.examples.group_talk.scripted import ScriptedVoices
from casework.examples.group_talk.talk import (
    LATE,
    NOBODY,
    PASSED,
    TOOK,
    GroupTalkManager,
    NobodyAnswersError,
    TalkToAll,
    manager_of_talk,
)
from casework.tasktree import Commander, Job, NodeFailedError, NodeState, handler, submit
from casework.trees import local_context

Say = Callable[[Role, Heard], Iterator[Any]]


class Voices:
    """Each role says what `say` yields: pieces, errors to raise, events to wait for. Notes what was heard."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.heard: list[tuple[str, Heard]] = []
        self.open = 0

    async def reply(self, role: Role, heard: Heard) -> AsyncIterator[str]:
        self.heard.append((role.name, heard))
        self.open += 1
        try:
            for piece in self._say(role, heard):
                await asyncio.sleep(0)
                if isinstance(piece, BaseException):
                    raise piece
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                else:
                    yield piece
        finally:
            self.open -= 1


def always(role: Role, heard: Heard) -> Iterator[Any]:
    yield f"I, {role.name}, "
    yield "speak."


def talk_of(say: Say | Voices, *roles: str, **given: Any) -> GroupTalkManager:
    manager = GroupTalkManager(say if isinstance(say, Voices) else Voices(say), "Begin.", **given)
    for role in roles:
        manager.create_role(role)
    return manager


def rounds(manager: GroupTalkManager) -> list[TalkToAll]:
    return [node for node in manager.children if isinstance(node, TalkToAll)]


def speakers(manager: GroupTalkManager) -> list[str]:
    return [line.speaker for line in manager.minutes]


async def test_one_wins_each_round_and_the_others_are_told() -> None:
    """TT-23, TT-24. Of roles that all want to speak exactly one has the floor; each other is told who."""
    voices = Voices(always)
    manager = talk_of(voices, "Ann", "Bob", "Cy", "Di", rounds=6)
    minutes = await Commander().run(manager)
    assert minutes is manager.minutes
    assert speakers(manager) == ["Chair", "Ann", "Bob", "Cy", "Di", "Ann", "Bob"]
    assert manager.end_reason == "round limit (6)"
    for number, talk in enumerate(rounds(manager)[:-1]):
        winner = speakers(manager)[number + 1]
        assert talk.result == {
            role: TOOK if role == winner else f"denied: {winner} speaks" for role in ("Ann", "Bob", "Cy", "Di")
        }
    assert rounds(manager)[-1].result == {}
    told = [heard.denied_by for name, heard in voices.heard if name == "Di"]
    assert told == [None, "Ann", "Bob", "Cy", None, "Ann"]  # in the fourth it had the floor itself
    assert voices.open == 0
    assert manager.speaking is None


async def test_the_parties_find_the_manager_above_them() -> None:
    """TT-23. Handlers hang below their round, rounds on the manager; all reach it by `ancestor_chain`."""
    manager = talk_of(always, "Ann", "Bob", rounds=3)
    await Commander().run(manager)
    assert [node.path for node in rounds(manager)] == [f"GroupTalkManager.1/TalkToAll.{n}" for n in (1, 2, 3, 4)]
    (handling,) = rounds(manager)[1].children
    assert handling.path == "GroupTalkManager.1/TalkToAll.2/handle_response.1"
    assert [node.name for node in handling.children] == ["parse_stream_response"] * 2
    assert all(manager in node.ancestor_chain for node in handling.children)
    with pytest.raises(NodeFailedError, match="No GroupTalkManager is above"):
        await Commander().run(Stray())


class Stray(Job):
    async def task(self) -> Any:
        return manager_of_talk()


async def test_whoever_begins_first_has_the_floor() -> None:
    """TT-24. Not whoever was asked first: the quick one wins, and the slow one is denied while the quick one speaks."""
    go = asyncio.Event()

    def say(role: Role, heard: Heard) -> Iterator[Any]:
        if role.name == "Slow":
            yield go
            yield "Late."
        else:
            yield "Quick "
            yield "words."
            go.set()

    manager = talk_of(say, "Slow", "Quick", rounds=1)
    await Commander().run(manager)
    assert speakers(manager) == ["Chair", "Quick"]
    assert rounds(manager)[0].result == {"Slow": "denied: Quick speaks", "Quick": TOOK}


async def test_roles_hear_what_was_said_since_they_were_asked() -> None:
    """TT-23. Everything once, their own words among it; one that joins later hears it from the beginning."""
    voices = Voices(always)
    manager = talk_of(voices, "Ann", "Bob", rounds=3)
    manager.hear = lambda speaker, piece: manager.create_role("Cy") if speaker == "Bob" and not piece else None
    await Commander().run(manager)
    heard = {
        role: [[line.speaker for line in each.lines] for name, each in voices.heard if name == role]
        for role in ("Ann", "Bob", "Cy")
    }
    assert heard["Ann"] == heard["Bob"] == [["Chair"], ["Ann"], ["Bob"]]
    assert heard["Cy"] == [["Chair", "Ann", "Bob"]]
    assert speakers(manager)[-1] == "Cy"


@pytest.mark.parametrize("nothing", [[], [""], ["  \n"], ["PASS"], ["PA", "SS", "."], ["**Pass**", "\n"], ["(pass)"]])
async def test_a_role_may_have_nothing_to_say(nothing: list[str]) -> None:
    """TT-23. No words, or the one word, in whatever pieces they come; when that holds for all, the talk is over."""
    manager = talk_of(lambda role, heard: iter(nothing), "Ann", "Bob")
    await Commander().run(manager)
    assert rounds(manager)[0].result == {"Ann": PASSED, "Bob": PASSED}
    assert manager.end_reason == NOBODY
    assert speakers(manager) == ["Chair"]


@pytest.mark.parametrize("words", [["Pass", "ing this is wrong."], ["PASS", " it on"], ["p", "ay"], ["", " ", "Yes"]])
async def test_words_that_begin_like_nothing_are_words(words: list[str]) -> None:
    """TT-23. The floor is taken as soon as it is clear, and no piece is lost."""
    manager = talk_of(lambda role, heard: iter(words), "Ann", rounds=1)
    await Commander().run(manager)
    assert manager.minutes[1].words == "".join(words).strip()


@pytest.mark.parametrize("limit", [0, 1, 3])
async def test_the_round_limit_ends_it_cleanly(limit: int) -> None:
    """TT-24. So many replies after the opening; then nobody is asked any more."""
    voices = Voices(always)
    manager = talk_of(voices, "Ann", "Bob", rounds=limit)
    await Commander().run(manager)
    assert len(manager.minutes) == limit + 1
    assert len(voices.heard) == 2 * limit
    assert manager.end_reason == f"round limit ({limit})"
    assert manager.state is NodeState.COMPLETED


async def test_closing_in_mid_talk_ends_it_cleanly() -> None:
    """TT-24. Who speaks breaks off, which the minutes say; replies under way are closed; the talk itself completes."""
    never, begun = asyncio.Event(), asyncio.Event()

    def say(role: Role, heard: Heard) -> Iterator[Any]:
        if role.name == "Ann":
            yield "I have "
            yield "a long"
            begun.set()
        yield never

    voices = Voices(say)
    manager = talk_of(voices, "Ann", "Bob")
    async with Commander() as commander:
        submit(manager, parent=commander)
        await begun.wait()
        assert manager.speaking == "Ann"
        await manager.close_group_talk("lunch")
        assert await manager is manager.minutes
    assert (manager.end_reason, voices.open) == ("lunch", 0)
    assert not manager.speaking
    assert str(manager.minutes[-1]) == "Ann: I have a long (breaks off)"
    assert [talk.state for talk in rounds(manager)] == [NodeState.TERMINATED] * 2
    assert manager.state is NodeState.COMPLETED


async def test_closing_from_inside_ends_it_cleanly() -> None:
    """TT-24. Called by a part of the talk, it ends the caller, too."""
    closers: list[Any] = []

    @handler
    async def close() -> None:
        await manager.close_group_talk("enough")
        closers.append("went on")

    class Closing(Voices):
        async def reply(self, role: Role, heard: Heard) -> AsyncIterator[str]:
            if len(manager.minutes) == 3:
                await close()
            async for piece in super().reply(role, heard):
                yield piece

    manager = talk_of(Closing(always), "Ann", "Bob")
    await Commander().run(manager)
    assert (manager.end_reason, closers) == ("enough", [])
    assert len(manager.minutes) == 3
    assert manager.state is NodeState.COMPLETED


async def test_a_talk_closed_before_it_opens_says_nothing() -> None:
    """TT-24. And one that is closed while a role thinks does not give it the floor."""
    manager = talk_of(always, "Ann")
    await manager.close_group_talk()
    assert await Commander().run(manager) == []

    def say(role: Role, heard: Heard) -> Iterator[Any]:
        other.end_reason = "closed"
        yield "Words."

    other = talk_of(say, "Ann")
    await Commander().run(other)
    assert rounds(other)[0].result == {"Ann": LATE}


async def test_a_role_that_fails_is_silent_and_the_talk_goes_on() -> None:
    """TT-24. Its node shows the error; a speaker that fails in mid-speech is heard as far as it came."""

    def say(role: Role, heard: Heard) -> Iterator[Any]:
        if role.name == "Bob":
            yield OSError("no line")
        yield "I say "
        if len(manager.minutes) == 2:
            yield OSError("cut")
        yield "this."

    voices = Voices(say)
    manager = talk_of(voices, "Bob", "Ann", rounds=3)
    await Commander().run(manager)
    assert [str(line) for line in manager.minutes[1:3]] == ["Ann: I say this.", "Ann: I say (breaks off)"]
    assert rounds(manager)[0].result == {"Bob": "failed: OSError: no line", "Ann": TOOK}
    parsed = rounds(manager)[0].children[0].children
    assert [node.state for node in parsed] == [NodeState.EXCEPTION, NodeState.COMPLETED]
    assert manager.failures[:2] == [(0, "Bob", "OSError: no line"), (1, "Bob", "OSError: no line")]
    assert voices.open == 0


async def test_where_every_role_fails_the_talk_fails() -> None:
    """TT-24. Silence is not made of errors: the last one is named, as the cause."""
    manager = talk_of(lambda role, heard: iter([OSError("no line")]), "Ann", "Bob")
    with pytest.raises(NodeFailedError) as caught:
        await Commander().run(manager)
    assert isinstance(caught.value.__cause__, NobodyAnswersError)
    assert "None of Ann, Bob could answer. The last failed: OSError: no line" in str(caught.value)
    assert isinstance(caught.value.__cause__.__cause__, OSError)


async def test_an_audience_that_fails_fails_the_talk() -> None:
    """TT-24. That is no fault of who speaks."""

    def hear(speaker: str, piece: str) -> None:
        raise LookupError("no paper")

    with pytest.raises(NodeFailedError, match="no paper"):
        await Commander().run(talk_of(always, "Ann", hear=hear))


async def test_a_thousand_rounds_stay_flat() -> None:
    """TT-23. Every round is a child of the manager, three levels above the last of its handlers."""
    manager = talk_of(always, "Ann", "Bob", "Cy", rounds=1000)
    commander = Commander()
    await commander.run(manager)
    assert len(manager.children) == 1001
    assert {len(node.ancestor_chain) for node in manager.children} == {3}
    assert len(manager.minutes) == 1001


async def test_a_thousand_rounds_leave_no_nodes_behind() -> None:
    """TT-23, TT-25. With `keep="none"` finished rounds are gone, and no round keeps the one before."""
    alive: weakref.WeakSet[Reply] = weakref.WeakSet()
    most = 0

    class Counted(GroupTalkManager):
        def ask(self, role: Role) -> Reply:
            nonlocal most
            reply = super().ask(role)
            alive.add(reply)
            if len(self.minutes) % 300 == 0 and role.name == "Ann":
                gc.collect()
                most = max(most, len(alive))
            return reply

    manager = Counted(Voices(always), "Begin.", rounds=1000)
    for name in ("Ann", "Bob", "Cy"):
        manager.create_role(name)
    await Commander(keep="none").run(manager)
    assert manager.children == ()
    assert len(manager.minutes) == 1001
    assert 0 < most < 60  # a few rounds, of 3,000 replies


@pytest.mark.parametrize("name", ["", " ", "Chair", "Ann"])
def test_a_role_has_a_name_of_its_own(name: str) -> None:
    """TT-23. Blank and taken names are refused."""
    with pytest.raises(ValueError, match="name"):
        talk_of(always, "Ann").create_role(name)


def test_a_talk_has_an_opening_and_a_limit() -> None:
    """TT-24. A blank opening and a negative limit are refused."""
    for opening, limit in ((" ", 1), ("Begin.", -1)):
        with pytest.raises(ValueError, match=r"blank|rounds is -1"):
            GroupTalkManager(Voices(always), opening, rounds=limit)


async def test_a_reply_is_lazy() -> None:
    """TT-23. Nothing is asked of a reply before it begins; closing one that never began is no error."""
    voices = Voices(always)
    reply = Reply("Ann", voices.reply(Role("Ann"), Heard(())))
    await reply.aclose()
    assert voices.heard == []
    assert [piece async for piece in Reply("Ann", spoken("x")).words()] == ["x"]


# ---- the committee


async def test_the_committee_comes_to_a_recommendation() -> None:
    """TT-24. The cast that ships: everyone speaks, someone is denied, nobody repeats, and it ends by itself."""
    manager = seat(GroupTalkManager(ScriptedVoices(SCRIPTS), OPENING))
    minutes = await Commander().run(manager)
    assert {line.speaker for line in minutes} == {"Chair", *(member.name for member in CAST)}
    assert manager.end_reason == NOBODY
    assert len({line.words for line in minutes}) == len(minutes) == 9
    outcomes = [outcome for talk in rounds(manager) for outcome in talk.result.values()]
    assert any(outcome.startswith("denied") for outcome in outcomes)
    assert "vote to approve" in minutes[-2].words


async def test_the_free_tree_is_the_same_talk() -> None:
    """TT-24. The durable code under plain asyncio says what the plain one says, with whole replies."""
    ctx = local_context({"rounds": 8}, {member.agent: scripted_agent(member.script) for member in CAST})
    told = await group_talk.run(ctx)
    plain = await Commander().run(seat(GroupTalkManager(ScriptedVoices(SCRIPTS), OPENING)))
    assert sorted(line["words"] for line in told["minutes"]) == sorted(line.words for line in plain)
    assert app.trees == (group_talk,)


def test_the_command_prints_the_talk_and_draws_the_tree(capsys: pytest.CaptureFixture[str]) -> None:
    """TT-24. (a) As a plain script: what is said, who wanted to speak, and the tree at the end."""
    assert command.main(["--rounds", "2"]) == 0
    said = capsys.readouterr().out
    assert "\n\nRisk analyst: Both misses are narrow" in said
    assert "It ends: round limit (2)." in said
    assert "Round 1: Applicant's advocate: denied: Risk analyst speaks" in said
    assert "  GroupTalkManager.1 COMPLETED" in said


def test_the_command_refuses_what_cannot_be(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """TT-24. With words that say what to do."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert command.main(["--opening", "/no/such/file"]) == 2
    told = "The opening '/no/such/file' cannot be read: No such file or directory. Name a text file.\n"
    assert capsys.readouterr().err == told
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert command.main(["--opening", str(tmp_path / "binary")]) == 2
    assert "is no text in UTF-8" in capsys.readouterr().err
    assert command.main(["--model", "any"]) == 2
    said = capsys.readouterr().err
    assert "Set OPENAI_API_KEY" in said
    assert "--base-url" in said
    for wrong in (["--rounds", "-1"], ["--base-url", "http://127.0.0.1:1/v1"]):
        with pytest.raises(SystemExit):
            command.main(wrong)
