"""`casework drill process` on real servers with SIGKILL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Done

SMALL = ["--transactions", "100", "--kills", "2", "--kill-every", "0.3", "--rows", "2000"]


def broken(told: Any) -> list[str]:
    """The promises that did not hold."""
    return [each["text"] for part in told["parts"] for each in part["promises"] if not each["held"]]


@pytest.mark.timeout(280)
def test_all_parts_hold_at_a_small_size(casework: Callable[..., Done], tmp_path: Path) -> None:
    """BP-9, BP-10, BP-16, BP-18, BP-24, BP-30. Killed workers and claimers, the Error process beside a tray, a Monitor
    that is stopped by its row, two zones on days on which clocks change: every promise holds."""
    done = casework("drill", "process", *SMALL, "--json", TMPDIR=str(tmp_path), timeout_s=270)
    told = done.json
    assert not broken(told), done.err
    assert (done.code, told["held"], told["kept"]) == (0, True, None)
    parts = {each["name"]: each for each in told["parts"]}
    assert {name: len(each["promises"]) for name, each in parts.items()} == {
        "claimers": 6,
        "schedule": 4,
        "trays": 7,
        "errors": 6,
        "stop": 2,
    }
    counts = {name: each["counts"] for name, each in parts.items()}
    trays, claimers = counts["trays"], counts["claimers"]
    assert (trays["transactions"], trays["effects"], trays["kills"]) == (100, 100, 2)
    assert (claimers["rows"], claimers["claimers"], claimers["kills"]) == (2000, 8, 2)
    assert claimers["found_again"] >= 1
    assert counts["errors"]["failed_from_outside"] > 0
    assert not list(tmp_path.glob("casework-process-*"))


@pytest.mark.timeout(180)
def test_a_row_that_is_committed_by_itself_is_found(casework: Callable[..., Done], tmp_path: Path) -> None:
    """BP-9. A task that writes outside its Transaction's database transaction, in a connection of its own, has written
    twice what its worker was killed at; the drill says so, where the ledger alone is in order."""
    words = ["--app", "tests.acceptance.careless_process:app", "--part", "trays", "--transactions", "300"]
    done = casework(
        "drill", "process", *words, "--kills", "3", "--kill-every", "0.5", "--json", TMPDIR=str(tmp_path), timeout_s=170
    )
    told = done.json
    assert "Every Transaction has one row of each transactional task" in broken(told), done.err
    assert "Every Transaction has one COMPLETED step of every task" not in broken(told), done.err
    assert (done.code, told["held"]) == (1, False)
    assert Path(told["kept"]).is_dir()
