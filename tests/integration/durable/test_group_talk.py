"""The group talk as a free tree, on a real engine: the same talk, and what is left of it when its worker is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from casework.examples.group_talk.committee import CAST, OPENING, SCRIPTS, seat
from casework.examples.group_talk.scripted import ScriptedVoices
from casework.examples.group_talk.talk import NOBODY, GroupTalkManager
from casework.settings import WorkerSettings
from casework.store import runs
from casework.tasktree import Commander
from tests.integration.durable import streaming_trees
from tests.integration.durable.conftest import TENANT, House
from tests.integration.durable.group_talk_app import ASKED, HANGS_AT, app
from tests.integration.durable.worker_processes import killed_when

APP = "tests.integration.durable.group_talk_app:app"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with a line for each ask, in whatever process."""
    file = tmp_path / "asked"
    file.touch()
    monkeypatch.setenv(ASKED, str(file))
    return file


def asks_in(file: Path) -> Counter[str]:
    return Counter(file.read_text().splitlines())


async def result_of(house: House, run_id: UUID) -> Any:
    async with house.db.transaction() as conn:
        return {row.key: row.value for row in await runs.context(conn, TENANT, run_id)}["result"]


async def plainly_said() -> set[str]:
    manager = seat(GroupTalkManager(ScriptedVoices(SCRIPTS), OPENING))
    return {line.words for line in await Commander().run(manager)}


async def test_the_talk_runs_durably_though_it_never_stays_in_memory(house: House, asked: Path) -> None:
    """TT-24. (c) Rebuilt from its history after every reply, it says what the plain one says; each is asked once."""
    small = replace(house, settings=replace(house.settings, worker=WorkerSettings(cache_size=0)))
    async with small.with_app(app) as busy:
        run_id = await busy.start({}, "group-talk")
        await busy.reaches(run_id, "COMPLETED")
        told = await result_of(busy, run_id)
        steps = await busy.steps(run_id)
    assert told["ended"] == NOBODY
    assert {line["words"] for line in told["minutes"]} == await plainly_said()
    assert set(asks_in(asked).values()) == {1}
    assert {step.attempt for step in steps} == {1}
    rounds = len(told["minutes"])
    assert sorted(step.path for step in steps) == sorted(
        f"group-talk.1/GroupTalkManager.1/TalkToAll.{n}/handle_response.1/parse_stream_response.{role}/model.1"
        for n in range(1, rounds + 1)
        for role in range(1, len(CAST) + 1)
    )


async def test_input_is_the_runs(house: House, asked: Path) -> None:
    """TT-24. Opening, round limit and pace come with the run; where nobody has anything to say it ends at once."""
    async with house.with_app(app) as busy:
        silent = await busy.start({"opening": "The weather is fine."}, "group-talk")
        short = await busy.start({"rounds": 1}, "group-talk")
        paced = await busy.start({"rounds": 1, "pace": Decimal("0.1")}, "group-talk")
        await busy.reaches(silent, "COMPLETED")
        await busy.reaches(short, "COMPLETED")
        opened = [{"speaker": "Chair", "words": "The weather is fine.", "round": 0, "broken_off": False}]
        assert await result_of(busy, silent) == {"ended": NOBODY, "minutes": opened}
        assert (await result_of(busy, short))["ended"] == "round limit (1)"
        await busy.reaches(paced, "COMPLETED")
        assert (await result_of(busy, paced))["ended"] == "round limit (1)"
        history = await busy.client.get_workflow_handle(str(paced)).fetch_history()
        waits = [event for event in history.events if event.HasField("timer_fired_event_attributes")]
        assert len(waits) == len(CAST)


async def test_the_streaming_adapters_in_a_durable_workflow(house: House) -> None:
    """TT-22. A blocking source is refused by name, as there are no threads; a split needs none, and works."""
    async with house.with_app(streaming_trees.app) as busy:
        run_id = await busy.start({}, "streams")
        await busy.reaches(run_id, "COMPLETED")
        told = await result_of(busy, run_id)
    assert told["halves"] == [[0, 1, 2, 3, 4], [0, 2, 4]]
    assert "this event loop has no threads" in told["refused"]


async def killed_at(house: House, folder: Path, asked: Path, number: int) -> None:
    """A worker that was asked so often, and killed before it answered that one."""
    here = {HANGS_AT: str(number)}
    await killed_when(lambda: asks_in(asked).total() >= number, f"ask {number}", house, APP, folder, **here)


@pytest.mark.parametrize("number", [4, 11])
async def test_a_talk_goes_on_when_its_worker_is_killed(house: House, tmp_path: Path, asked: Path, number: int) -> None:
    """TT-24, DA-1. SIGKILL in mid-talk: another worker goes on, and no reply that was recorded is asked for again."""
    async with house.with_app(app):
        pass  # published
    run_id = await house.start({}, "group-talk")
    await killed_at(house, tmp_path, asked, number)
    recorded = {step.path for step in await house.steps(run_id) if step.state == "COMPLETED"}
    before = asks_in(asked)
    assert 0 < len(recorded) < number
    busy = replace(house, app=app)
    async with busy.worker():
        await busy.reaches(run_id, "COMPLETED")
    told, steps = await result_of(busy, run_id), await busy.steps(run_id)
    assert told["ended"] == NOBODY
    assert {line["words"] for line in told["minutes"]} == await plainly_said()
    assert {step.attempt for step in steps if step.path in recorded} == {1}
    asks = asks_in(asked)
    again = asks - Counter(dict.fromkeys(asks, 1))
    assert again.total() <= before.total() - len(recorded)  # those in flight, and no other
    assert len(asks) == len(steps)
