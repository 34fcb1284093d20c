"""Replay history files with the present code: `python -m tests.replay.replaying FILE...` does it in a fresh process."""

from __future__ import annotations

import asyncio
import json
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from temporalio.client import WorkflowHistory
from temporalio.worker import Interceptor, Replayer

from casework.durable.activations import Activations
from casework.durable.converter import data_converter
from casework.durable.keys import KEY_BYTES, Key, KeyFile
from casework.durable.trees import TreePlaces
from casework.durable.worker import WORKFLOWS, workflow_runner
from casework.settings import HistorySettings
from tests.replay.kept_trees import app as kept_trees

HISTORIES = Path(__file__).parent / "histories"
BLOBS = Path(__file__).parent / "blobs"
"""The large values that recorded histories name; added to with them."""
NOTHING = 1_500_000
"""No value of theirs has so many bytes: a replay keeps none."""
_FOLDER = TemporaryDirectory(prefix="replay-keys-")


@cache
def keys() -> Path:
    """A file with the one key that recorded histories are encrypted with. It is no secret, and opens nothing else."""
    path = Path(_FOLDER.name) / "keys.json"
    KeyFile((Key("kept", "2026-11-30T00:00:00.000+00:00", bytes(KEY_BYTES)),), "kept").save(path)
    return path


def sealed(blobs: Path, *, encrypted: bool, offload_bytes: int = 2048) -> HistorySettings:
    """Settings under which large values go to `blobs`, and all are encrypted if wanted."""
    return HistorySettings(blobs=str(blobs), offload_bytes=offload_bytes, keys=keys() if encrypted else None)


def files() -> list[Path]:
    """All recorded histories."""
    return sorted(HISTORIES.rglob("*.json"))


def portable(history: str) -> str:
    """A history without what belongs to the machine it was recorded on: stack traces, process and host names."""
    made = json.loads(history, object_pairs_hook=_without_machine)
    return json.dumps(made, indent=1, sort_keys=True) + "\n"


def _without_machine(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if name not in ("stackTrace", "identity")}


def replayer(blobs: Path = BLOBS, *watching: Interceptor) -> Replayer:
    """Replays histories of any kind; their large values are in `blobs`."""
    return Replayer(
        workflows=WORKFLOWS,
        data_converter=data_converter(sealed(blobs, encrypted=True, offload_bytes=NOTHING)),
        workflow_runner=workflow_runner(),
        workflow_task_executor=Activations(8),
        interceptors=[*watching, TreePlaces(kept_trees.trees)],
    )


async def replay(*paths: Path) -> None:
    """Raises what the first history that no longer replays raises."""
    for path in paths:
        await replayer().replay_workflow(WorkflowHistory.from_json(path.stem, path.read_text()))


if __name__ == "__main__":
    asyncio.run(replay(*(Path(name) for name in sys.argv[1:])))
    sys.stdout.write(f"{len(sys.argv) - 1} replayed\n")
