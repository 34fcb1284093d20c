"""`casework drill` on real servers with SIGKILL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import APP, Done


@pytest.mark.timeout(300)
def test_the_five_scenarios(casework: Callable[..., Done], tmp_path: Path) -> None:
    """DA-1, DA-2, DA-38, DA-41, DA-49. Every promise of every scenario holds, and the counts say so."""
    done = casework("drill", "--app", APP, "--json", TMPDIR=str(tmp_path))
    told = done.json
    played = {each["name"]: each for each in told["scenarios"]}
    assert list(played) == ["crash", "lost-acknowledgement", "restart", "stale-decision", "policy-change"]
    assert not broken(told), done.err
    assert (done.code, told["held"], told["kept"]) == (0, True, None)
    for each in told["scenarios"]:
        assert each["counts"]["duplicates"] == 0
        assert each["counts"]["decisions_accepted"] >= 1
    crash = played["crash"]["counts"]
    assert (crash["calls"]["credit_check"], crash["calls"]["income_verification"]) == (1, 1)
    assert (crash["duplicates"], crash["decisions_accepted"]) == (0, 1)
    lost = played["lost-acknowledgement"]["counts"]
    assert (lost["calls_at_destination"], lost["effects_at_destination"], lost["rows"]) == (1, 1, 1)
    assert played["restart"]["counts"]["decisions_accepted"] == 1
    stale = played["stale-decision"]["counts"]
    assert (stale["decisions_sent"], stale["decisions_accepted"], stale["decisions_refused"]) == (4, 2, 2)
    assert played["policy-change"]["counts"]["policy_versions"] == {"open_run": [1, 1], "later_run": [2]}
    assert not list(tmp_path.glob("casework-drill-*"))


@pytest.mark.timeout(300)
def test_twenty_kills(casework: Callable[..., Done], tmp_path: Path) -> None:
    """DA-26. 20 SIGKILLs over all points and tools: no effect twice, no committed result called again."""
    done = casework("drill", "--kills", "20", "--app", APP, "--json", TMPDIR=str(tmp_path))
    told = done.json
    assert not broken(told), done.err
    assert done.code == 0
    counts = told["scenarios"][0]["counts"]
    assert counts["kills"] >= 20
    assert set(counts["kills_by_point"]) == {"claimed", "sent", "acted", "committed", "reported"}
    assert (counts["duplicates"], counts["committed_called_again"]) == (0, 0)
    assert counts["effects_at_destination"] == counts["runs"]
    assert counts["in_flight_repeats"] > 0


@pytest.mark.timeout(300)
def test_a_destination_that_repeats_effects_is_found(casework: Callable[..., Done], tmp_path: Path) -> None:
    """DA-26. The drill can fail: a bureau that ignores keys breaks one promise, and the folder is kept."""
    done = casework("drill", "--kills", "1", "--app", "tests.acceptance.careless:app", "--json", TMPDIR=str(tmp_path))
    told = done.json
    assert (done.code, told["held"]) == (1, False)
    assert [promise["text"] for promise in broken(told)] == ["No effect happened twice at the destination"]
    assert told["scenarios"][0]["counts"]["duplicates"] >= 1
    assert Path(told["kept"]).is_dir()


def broken(told: Any) -> list[Any]:
    """Promises that did not hold."""
    return [promise for each in told["scenarios"] for promise in each["promises"] if not promise["held"]]
