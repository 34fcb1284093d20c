"""The loop with tools that only compute and note each call in a file; one hangs, with its worker, the third time."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.integration.durable.chains import loop_app

FOLDER = Path(os.environ["CASEWORK_TEST_FOLDER"])
CALLS = FOLDER / "calls"
HANGS = FOLDER / "hangs"


def note(name: str, _calls: int) -> None:
    """One line for each call; the third of `second` does not come back, once."""
    with CALLS.open("a") as file:
        file.write(f"{name}\n")
    if CALLS.read_text().splitlines().count("second") == 3 and not HANGS.exists():
        HANGS.touch()
        time.sleep(600)


app = loop_app(FOLDER, note, computing=("first", "second"))
