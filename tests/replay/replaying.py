"""Replay history files with the present code: `python -m tests.replay.replaying FILE...` does it in a fresh process."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from casework.durable.converter import DATA_CONVERTER
from casework.durable.trees import TreePlaces
from casework.durable.worker import WORKFLOWS, workflow_runner
from tests.replay.kept_trees import app as kept_trees

HISTORIES = Path(__file__).parent / "histories"


def files() -> list[Path]:
    """All recorded histories."""
    return sorted(HISTORIES.rglob("*.json"))


def portable(history: str) -> str:
    """A history without what belongs to the machine it was recorded on: stack traces, process and host names."""
    made = json.loads(history, object_pairs_hook=_without_machine)
    return json.dumps(made, indent=1, sort_keys=True) + "\n"


def _without_machine(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if name not in ("stackTrace", "identity")}


def replayer() -> Replayer:
    return Replayer(
        workflows=WORKFLOWS,
        data_converter=DATA_CONVERTER,
        workflow_runner=workflow_runner(),
        interceptors=[TreePlaces(kept_trees.trees)],
    )


async def replay(*paths: Path) -> None:
    """Raises what the first history that no longer replays raises."""
    for path in paths:
        await replayer().replay_workflow(WorkflowHistory.from_json(path.stem, path.read_text()))


if __name__ == "__main__":
    asyncio.run(replay(*(Path(name) for name in sys.argv[1:])))
    sys.stdout.write(f"{len(sys.argv) - 1} replayed\n")
