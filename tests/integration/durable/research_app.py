"""The research example as it ships, with readings that are written down, and one that may hang."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from casework.agents import ToolContext
from casework.app import App
from casework.examples.research import app as shipped
from casework.examples.research.reading import read_document

READ = "TEST_RESEARCH_READ"
"""Names the file that gets a line for each reading: the path of the step, and of the document."""
HANGS_AT = "TEST_RESEARCH_HANGS_AT"
"""The number of the reading, of all that this process does, that does not come back."""

_lock = threading.Lock()
_reads = 0


def counted(ctx: ToolContext, path: str, part: int = 1) -> Any:
    """`read_document`, written down before it reads."""
    global _reads  # noqa: PLW0603 - of this process
    with _lock:
        _reads += 1
        number = _reads
        with Path(os.environ[READ]).open("a", encoding="utf-8") as file:
            file.write(f"{ctx.path} {path}\n")
    if str(number) == os.environ.get(HANGS_AT):
        threading.Event().wait()
    return read_document(ctx, path, part)


app = App(
    tools=[replace(each, function=counted) if each is read_document else each for each in shipped.tools],
    manifests=shipped.manifests,
    scripts=shipped.scripts,
)
