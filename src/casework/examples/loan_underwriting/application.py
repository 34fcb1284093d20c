"""The application object, put together from its parts."""

from __future__ import annotations

from pathlib import Path

from casework.app import App
from casework.examples.loan_underwriting.rehearsal import REHEARSAL
from casework.examples.loan_underwriting.script import underwriter
from casework.examples.loan_underwriting.tools import TOOLS

FOLDER = Path(__file__).parent
MANIFEST = FOLDER / "manifests" / "loan-underwriting.yaml"
POLICY = FOLDER / "policy.csv"
"""The shipped policy as an owner would write it: `casework policy load` reads it."""

app = App(tools=TOOLS, manifests=(MANIFEST,), scripts={"underwriter": underwriter}, policy=POLICY, rehearsal=REHEARSAL)
