"""Which first attempts outlive the next one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from casework.app import App
from casework.drills.ground import Ground
from casework.drills.kill_plan import declarations
from casework.drills.outlive import Case, cases
from casework.examples.loan_underwriting import app as loan
from casework.examples.repeat_safety import app as sample


def of(app: App) -> list[Case]:
    ground: Any = Ground.__new__(Ground)  # a plan needs the rehearsal alone, no server
    ground.rehearsal = app.rehearsal
    return cases(ground, declarations(ground.rehearsal, app.toolbox))


def test_a_first_attempt_of_each_declaration_outlives_in_every_way() -> None:
    """DA-26. Three ways; a transactional tool has no call that could be held while heartbeats get lost."""
    made = Counter(case.declaration for case in of(sample))
    assert made == {"idempotent": 3, "keyed": 3, "verify": 3, "transactional": 2}


def test_tools_that_only_read_are_left_out() -> None:
    """DA-26. Their first attempt may do as it likes."""
    assert [(case.tool, case.way) for case in of(loan)] == [
        ("credit_check", "mute"),
        ("credit_check", "claimed"),
        ("credit_check", "acted"),
    ]
