"""The group talk under roles that do anything: what holds of every round, and limits that hold it up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from hypothesis import given, settings
from hypothesis import strategies as st

from casework.examples.group_talk.parts import Heard, Role
from casework.examples.group_talk.talk import PASSED, TOOK, GroupTalkManager, NobodyAnswersError, TalkToAll
from casework.tasktree import Commander, NodeFailedError, NodeState

ROLES = ("Ann", "Bob", "Cy")
Turn = tuple[int, str, int]
"""What a role does when it is asked: steps until it begins, what it then does, and steps between its words."""
TURNS = st.tuples(st.integers(0, 6), st.sampled_from(["speaks", "passes", "fails", "breaks off"]), st.integers(0, 3))


class Random:
    """Takes the next turn of each role from a plan; a role whose plan is over passes."""

    def __init__(self, plan: dict[str, list[Turn]]) -> None:
        self.plan = {role: list(turns) for role, turns in plan.items()}
        self.did: list[dict[str, str]] = []
        self.open = 0

    async def reply(self, role: Role, heard: Heard) -> AsyncIterator[str]:
        wait, does, pause = self.plan[role.name].pop(0) if self.plan[role.name] else (0, "passes", 0)
        self.open += 1
        try:
            for _ in range(wait):
                await asyncio.sleep(0)
            if does == "hangs":
                await asyncio.Event().wait()
            if does == "fails":
                raise OSError("no line")
            if does == "passes":
                yield "PASS"
                return
            for number in range(3):
                yield f"{number} "
                for _ in range(pause):
                    await asyncio.sleep(0)
                if does == "breaks off" and number == 1:
                    raise OSError("cut")
        finally:
            self.open -= 1


def check_round(talk: TalkToAll, outcomes: dict[str, str], next_speaker: str | None) -> None:
    """One winner at most; whoever else wanted to speak was told who has the floor."""
    winners = [role for role, outcome in outcomes.items() if outcome == TOOK]
    assert winners == ([next_speaker] if next_speaker else [])
    for role, outcome in outcomes.items():
        assert role in winners or outcome in (PASSED, f"denied: {next_speaker} speaks", "failed: OSError: no line")
        assert not outcome.startswith("denied") or next_speaker is not None


@settings(max_examples=150, deadline=None)
@given(
    plan=st.fixed_dictionaries({role: st.lists(TURNS, max_size=6) for role in ROLES}),
    rounds=st.integers(0, 6),
    slots=st.sampled_from([None, 1, 2]),
)
async def test_exactly_one_has_the_floor(plan: dict[str, list[Turn]], rounds: int, slots: int | None) -> None:
    """TT-23, TT-24. In every round of any talk, with any limit on handlers; nothing is left open at its end."""
    voices = Random(plan)
    manager = GroupTalkManager(voices, "Begin.", rounds=rounds)
    for role in ROLES:
        manager.create_role(role)
    commander = Commander(max_handlers=slots)
    with contextlib.suppress(NodeFailedError):
        await commander.run(manager)
    if commander.exception is not None:
        assert isinstance(commander.exception.__cause__, NobodyAnswersError)
    talks = [node for node in manager.children if isinstance(node, TalkToAll)]
    spoke = [line.speaker for line in manager.minutes]
    assert len(talks) == len(spoke) <= rounds + 1
    for talk, speaker in zip(talks, [*spoke[1:], None], strict=True):
        if talk.state is NodeState.COMPLETED and talk.number < rounds:
            assert set(talk.result) == set(ROLES)
            check_round(talk, talk.result, speaker)
    assert voices.open == 0
    assert manager.speaking is None


async def test_a_role_that_does_not_begin_in_time_is_passed_over() -> None:
    """TT-24. With `patience` a role that hangs holds nobody up; its reply is closed."""
    voices = Random({"Ann": [(0, "hangs", 0)], "Bob": [(0, "speaks", 0)], "Cy": []})
    manager = GroupTalkManager(voices, "Begin.", patience=0.05)
    for role in ROLES:
        manager.create_role(role)
    await Commander().run(manager)
    assert [line.speaker for line in manager.minutes] == ["Chair", "Bob"]
    assert [(number, role) for number, role, _ in manager.failures] == [(0, "Ann")]
    assert "TimeLimitError" in manager.failures[0][2]
    assert voices.open == 0
