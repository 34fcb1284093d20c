"""An application whose tool hangs the first time it is called: a worker can be killed in the middle of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from casework.agents import tool
from tests.integration.durable.apps import asking, errand

FOLDER = Path(os.environ["CASEWORK_TEST_FOLDER"])
MARK = FOLDER / "began"


@tool(effects=False, timeout=50)
def look() -> str:
    """Look; for ever, the first time."""
    first = not MARK.exists()
    MARK.touch()
    if first:
        time.sleep(600)
    return "seen"


app = errand(FOLDER, [look], asking([("look", {})]))
