"""Runs that were started by earlier code go on under the present code.

Files in `histories` are only ever added to: `pytest tests/replay --record RELEASE` records every kind that has no file
of that release yet.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError, WorkflowHandle, WorkflowHistory

from casework.errors import PayloadUnreadableError
from tests.integration.durable.conftest import House
from tests.integration.durable.parts import parts_of
from tests.replay.kept_trees import app as kept_trees
from tests.replay.kinds import KINDS
from tests.replay.replaying import BLOBS, HISTORIES, files, portable, replay, replayer


@pytest.mark.parametrize("path", files(), ids=lambda path: f"{path.parent.name}-{path.stem}")
async def test_a_recorded_history_replays(path: Path) -> None:
    """DA-17. The same commands for the same history, without any I/O, in a process that has run others before."""
    await replay(path)


def test_all_histories_replay_in_a_fresh_process() -> None:
    """DA-17. Nothing that an earlier run left in memory is needed."""
    command = [sys.executable, "-m", "tests.replay.replaying", *map(str, files())]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert f"{len(files())} replayed" in done.stdout, done.stderr[-3000:]


def test_every_kind_of_run_is_recorded() -> None:
    """Each kind has a history, and a history without its kind is still kept."""
    assert set(KINDS) <= {path.stem for path in files()}


async def test_a_changed_history_is_noticed() -> None:
    """The replayer does find what does not fit: the same history with another activity in it is refused."""
    path = next(path for path in files() if path.stem == "approved_after_more_info")
    changed = json.loads(path.read_text().replace("casework.call_tool", "casework.call_other"))
    with pytest.raises(Exception, match=r"(?i)nondeterminism"):
        await replayer().replay_workflow(WorkflowHistory.from_json(path.stem, changed))


async def test_a_run_past_the_bounds_when_roll_over_came_goes_on_as_it_began() -> None:
    """DA-20, DA-17. A history of earlier code that is long enough to roll over does not do so when it is replayed."""
    for path in files():
        if any(word in path.stem for word in ("tree", "tray", "monitor", "rolled", "encrypted", "beside_it")):
            continue
        history = json.loads(path.read_text())
        [payload] = history["events"][0]["workflowExecutionStartedEventAttributes"]["input"]["payloads"]
        start = json.loads(base64.b64decode(payload["data"]))
        payload["data"] = base64.b64encode(json.dumps({**start, "roll_over_events": 20}).encode()).decode()
        await replayer().replay_workflow(WorkflowHistory.from_json(path.stem, history))


async def _closed(handle: WorkflowHandle[Any, Any]) -> None:
    """Returns once the workflow is closed. What it gave cannot be read here where it is encrypted."""
    with contextlib.suppress(WorkflowFailureError, PayloadUnreadableError):
        await handle.result()


@pytest.mark.parametrize("name", KINDS)
async def test_what_runs_now_replays_at_once(
    house: House, tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    """DA-16. A run of each kind, made by the present code, is replayed from its own history."""
    run_id = await KINDS[name](house, tmp_path)
    handle = house.client.get_workflow_handle(str(run_id))
    # A run's row has its end a moment before its workflow, for which a worker must be there, one that has the trees.
    async with replace(house, app=kept_trees).worker():
        await _closed(handle)
    release = request.config.getoption("--record", default=None)
    for number, history in enumerate(reversed(await parts_of(house.client, run_id))):  # the last part first
        await replayer(tmp_path / "blobs").replay_workflow(history)
        file = HISTORIES / str(release) / f"{name}{f'_{number}_before' if number else ''}.json"
        if release and not file.exists():
            file.parent.mkdir(exist_ok=True)
            file.write_text(portable(history.to_json()))
            if (tmp_path / "blobs").exists():
                shutil.copytree(tmp_path / "blobs", BLOBS, dirs_exist_ok=True)
