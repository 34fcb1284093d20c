"""The application object, put together from its parts."""

from __future__ import annotations

from pathlib import Path

from casework.app import App
from casework.examples.repeat_safety.rehearsal import REHEARSAL
from casework.examples.repeat_safety.script import clerk
from casework.examples.repeat_safety.tools import TOOLS

MANIFEST = Path(__file__).parent / "manifests" / "change-of-address.yaml"

app = App(tools=TOOLS, manifests=(MANIFEST,), scripts={"clerk": clerk}, rehearsal=REHEARSAL)
