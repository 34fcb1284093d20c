"""`casework drill storm`: many cases while workers die every few seconds, then the API, the database and the engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import APP, REAL, Done

LIMIT_S = 880


@pytest.mark.timeout(900)
def test_a_storm_over_the_shipped_cases(casework: Callable[..., Done], tmp_path: Path) -> None:
    """DA-1, DA-2, DA-8, DA-28. 10 cases, a kill every 2 seconds, every server killed: all are there, none twice."""
    words = ("--cases", "4", "--side-by-side", "2", "--kill-every", "2")
    told = blown(casework, tmp_path, *words)
    weathered(told, 10)
    assert not list(tmp_path.glob("casework-storm-*"))


@pytest.mark.skipif(not REAL.exists(), reason=f"the real applications are not at {REAL} (CASEWORK_TEST_DATA)")
@pytest.mark.timeout(900)
def test_a_storm_over_real_applications(casework: Callable[..., Done], tmp_path: Path) -> None:
    """DA-1, DA-2, DA-9. 24 rows, 8 at a time, then 24 more under way while API, database and engine are killed.

    `casework drill storm --cases 200 --inputs FILE` does the same for minutes (`docs/operations/storm.md`).
    """
    told = blown(casework, tmp_path, "--cases", "24", "--kill-every", "2", "--inputs", str(REAL))
    weathered(told, 48)
    assert told["counts"]["kills_in_the_first_part"] >= 3


def blown(casework: Callable[..., Done], folder: Path, *words: str) -> Any:
    """What a storm told; every promise held."""
    done = casework("drill", "storm", "--app", APP, *words, "--json", timeout_s=LIMIT_S, TMPDIR=str(folder))
    told = done.json
    assert not [promise for promise in told["promises"] if not promise["held"]], (told, done.err)
    assert (done.code, told["held"], told["kept"]) == (0, True, None)
    return told


def weathered(told: Any, cases: int) -> None:
    """The figures of `cases` cases, of which one was approved and one rejected, by all witnesses."""
    counts, rows = told["counts"], told["counts"]["rows"]
    assert counts["cases"] == rows["runs"] == cases
    assert counts["runs_by_status"] == {"COMPLETED": 2, "AWAITING_REVIEW": cases - 2}
    assert counts["workflows_in_engine"] == {"COMPLETED": 2, "RUNNING": cases - 2}
    assert rows["reviews_pending"] == cases - 2
    assert counts["effects_at_destination"] == cases
    assert (counts["duplicates"], counts["committed_called_again"]) == (0, 0)
    assert counts["servers_killed"] == ["api", "postgres", "temporal"]
    assert counts["kills_of_workers"] >= 3
    assert counts["requests_without_answer"] > 0
    # Four model calls and four tools for each case, one accepted decision for each of two.
    assert rows["steps"] == 8 * cases + 2
    assert rows["messages"] == 9 * cases
