"""`python -m casework.examples.email_intake` on real servers keeps its promises and says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import ROOT, clean_environment

STAGES = [
    "INTAKE_IN_PROGRESS",
    "INTAKE_COMPLETED",
    "PROCESSING_IN_PROGRESS",
    "PROCESSING_COMPLETED",
    "SUBMISSION_IN_PROGRESS",
    "COMPLETED",
]


@pytest.mark.timeout(300)
def test_the_mails_go_their_ways_on_real_servers(tmp_path: Path) -> None:
    """BP-20, BP-25, BP-27, BP-29. Nine mails, eight Transactions and two clones; every one ends, and is explained."""
    done = subprocess.run(
        [sys.executable, "-m", "casework.examples.email_intake", "--json"],
        check=False,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        env=clean_environment(TMPDIR=str(tmp_path)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert [promise for promise in told["promises"] if not promise["held"]] == []
    assert len(told["promises"]) == 8
    assert told["counts"] == {"mails": 9, "transactions": 10, "decisions": 9, "completed": 6, "aborted": 4}
    ways = {row["uuid"]: [stage["after"] for stage in row["stages"]] for row in told["transactions"]}
    by_file = {row["data"]["file"]: row["uuid"] for row in told["transactions"] if row["natural_key"]}
    assert ways[by_file["02-pdf.eml"]] == STAGES
    aborted = [STAGES[0], "HAS_ERROR", "ERROR_IN_PROGRESS", "ABORTED"]
    assert ways[by_file["08-unreadable-pdf.eml"]] == aborted
    clones = {row["data"]["file"]: row for row in told["transactions"] if row["cloned_from"]}
    assert set(clones) == {"07-amount-in-euros.eml", "09-contradiction.eml"}
    assert ways[clones["07-amount-in-euros.eml"]["uuid"]] == STAGES[1:]
    assert clones["07-amount-in-euros.eml"]["cloned_from"] == by_file["07-amount-in-euros.eml"]
    assert told["kept"] is None
    assert not list(tmp_path.glob("casework-mails-*")), "the folder of a play that went well is removed"
