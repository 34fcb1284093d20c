"""Faults are carried out once, by the process that comes first, and nowhere else than planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from casework.durable.activities import faults
from casework.durable.activities.faults import Fault, FaultFolder, fault_point


def folder(tmp_path: Path) -> FaultFolder:
    made = FaultFolder(tmp_path / "faults")
    made.prepare()
    made.plan([Fault("one", "acted", "*/credit_check.1", "run-1")])
    return made


def test_a_fault_is_due_only_where_it_is_planned(tmp_path: Path) -> None:
    """Point, path and run must all fit."""
    made = folder(tmp_path)
    path = "underwrite.1/exchange.1/credit_check.1"
    assert made.due("acted", "run-1", path)
    assert not made.due("claimed", "run-1", path)
    assert not made.due("acted", "run-2", path)
    assert not made.due("acted", "run-1", "underwrite.1/exchange.1/credit_check.2")


def test_a_fault_happens_once(tmp_path: Path) -> None:
    """The first process that claims it has it; afterwards it is not due any more."""
    made = folder(tmp_path)
    fault = made.due("acted", "run-1", "a/credit_check.1")
    assert fault is not None
    assert made.claim(fault, "run-1", "a/credit_check.1")
    assert not made.claim(fault, "run-1", "a/credit_check.1")
    assert made.due("acted", "run-1", "a/credit_check.1") is None
    assert [mark.id for mark in made.marks()] == ["one"]


def test_a_step_at_its_last_attempt_is_spared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill takes an attempt of everything in flight; this test would not end otherwise."""
    made = folder(tmp_path)
    monkeypatch.setenv(faults.FOLDER, str(made.folder))
    with faults.in_flight(3, 3):
        fault_point("acted", "a/credit_check.1", "run-1")
    assert not made.marks()
    assert [(passed.point, passed.run) for passed in made.calls()] == [("acted", "run-1")]


def test_outside_of_drills_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable, no file is looked at."""
    monkeypatch.delenv(faults.FOLDER, raising=False)
    fault_point("acted", "a/credit_check.1", "run-1")
