"""`casework drill storm`: many cases while workers die every few seconds, then the API, the database and the engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import APP, REAL, Done

LIMIT_S = 880
SIDE_BY_SIDE = 4
"""Cases side by side; as many more are begun around the kill of each server."""


@pytest.mark.timeout(900)
def test_a_storm(casework: Callable[..., Done], tmp_path: Path) -> None:
    """DA-1, DA-2, DA-8, DA-9, DA-28. A kill every 2 seconds, then every server killed: all cases are there, none twice.

    Cases are rows of the real applications, or the shipped ones where those are not at hand; each makes the same
    promises, so more of them (`casework drill storm --cases 200`, `docs/operations/storm.md`) take longer and show more
    of the same.
    """
    inputs, first = (("--inputs", str(REAL)), 16) if REAL.exists() else ((), 4)
    words = ("--cases", str(first), "--side-by-side", str(SIDE_BY_SIDE), "--kill-every", "2", *inputs)
    told = blown(casework, tmp_path, *words)
    weathered(told, first + 3 * SIDE_BY_SIDE)
    assert told["counts"]["kills_in_the_first_part"] >= (3 if inputs else 1)
    assert not list(tmp_path.glob("casework-storm-*"))


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
