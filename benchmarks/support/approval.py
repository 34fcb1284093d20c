"""An application whose runs ask one question and wait: `benchmarks.support.approval:app`."""

from __future__ import annotations

from pathlib import Path

from casework.app import App

WORKFLOW = "approval"
REFERENCE = "benchmarks.support.approval:app"

app = App(manifests=(Path(__file__).parent / "approval.yaml",))
