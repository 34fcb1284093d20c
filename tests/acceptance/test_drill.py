"""`casework drill` on real servers with SIGKILL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import APP, Done

SAMPLE = "casework.examples.repeat_safety:app"
POINTS = {"claimed", "sent", "acted", "committed", "reported"}
DECLARATIONS = {"idempotent", "keyed", "transactional", "verify"}


@pytest.mark.timeout(400)
def test_the_six_scenarios(casework: Callable[..., Done], tmp_path: Path) -> None:
    """DA-1, DA-2, DA-38, DA-41, DA-49. Every promise of every scenario holds, and the counts say so."""
    names = ["crash", "lost-acknowledgement", "restart", "stale-decision", "policy-change", "recovery"]
    done = casework("drill", "--app", APP, "--json", TMPDIR=str(tmp_path), timeout_s=390)
    told = done.json
    played = {each["name"]: each for each in told["scenarios"]}
    assert list(played) == names
    assert not broken(told), done.err
    assert (done.code, told["held"], told["kept"]) == (0, True, None)
    for each in told["scenarios"]:
        assert each["counts"]["duplicates"] == 0
        assert each["counts"]["decisions_accepted"] >= (each["name"] != "recovery")
    crash = played["crash"]["counts"]
    assert (crash["calls"]["credit_check"], crash["calls"]["income_verification"]) == (1, 1)
    assert (crash["duplicates"], crash["decisions_accepted"]) == (0, 1)
    lost = played["lost-acknowledgement"]["counts"]
    assert (lost["calls_at_destination"], lost["effects_at_destination"], lost["rows"]) == (1, 1, 1)
    assert played["restart"]["counts"]["decisions_accepted"] == 1
    stale = played["stale-decision"]["counts"]
    assert (stale["decisions_sent"], stale["decisions_accepted"], stale["decisions_refused"]) == (4, 2, 2)
    assert played["policy-change"]["counts"]["policy_versions"] == {"open_run": [1, 1], "later_run": [2]}
    recovery = played["recovery"]["counts"]
    assert (recovery["kills"], len(recovery["seconds_to_resume"])) == (10, 10)
    assert recovery["median_seconds_to_resume"] <= 3
    assert set(recovery["median_seconds_by_point"]) == POINTS
    assert not list(tmp_path.glob("casework-drill-*"))


@pytest.mark.timeout(400)
def test_twenty_kills_over_all_declarations(casework: Callable[..., Done], tmp_path: Path) -> None:
    """DA-26, DA-27. 20 SIGKILLs: each point of a tool of each declaration; then first attempts that outlive the next.

    No effect twice, no committed result called again. Where no application is named, the shipped one is taken.
    """
    done = casework("drill", "--kills", "20", "--json", TMPDIR=str(tmp_path), timeout_s=390)
    told = done.json
    assert not broken(told), done.err
    assert (done.code, told["app"]) == (0, "casework.examples.repeat_safety:app")
    counts = told["scenarios"][0]["counts"]
    assert counts["kills"] >= 20
    assert set(counts["kills_by_point"]) == POINTS
    assert set(counts["kills_by_declaration"]) == DECLARATIONS
    assert min(counts["kills_by_point"].values()) >= 4
    assert min(counts["kills_by_declaration"].values()) >= 5
    assert (counts["duplicates"], counts["committed_called_again"]) == (0, 0)
    assert counts["effects_by_declaration"] == dict.fromkeys(DECLARATIONS, counts["runs"])
    assert counts["in_flight_repeats"] > 0
    assert counts["outlived"] == 11


@pytest.mark.timeout(300)
def test_a_committed_result_that_is_called_again_is_found(casework: Callable[..., Done], tmp_path: Path) -> None:
    """DA-26. The drill can fail where nothing but the destination saw the call: workers wrote nothing down."""
    done = casework(
        "drill", "--kills", "4", "--app", "tests.acceptance.careless_again:app", "--json", TMPDIR=str(tmp_path)
    )
    told = done.json
    assert (done.code, told["held"]) == (1, False)
    counts = told["scenarios"][0]["counts"]
    assert counts["kills_by_point"] == {"claimed": 1, "sent": 1, "acted": 1, "committed": 1}
    assert counts["committed_called_again"] >= 1  # by each attempt that found the result, and one of them may be killed
    assert counts["calls_without_act"] == counts["committed_called_again"]
    assert counts["duplicates"] == 0
    assert [promise["text"] for promise in broken(told)] == [
        "No committed result was called again",
        "The destination has no call that no worker began",
    ]


@pytest.mark.timeout(300)
def test_a_careless_tool_of_each_declaration_is_found(casework: Callable[..., Done], tmp_path: Path) -> None:
    """DA-26, DA-27. The drill can fail, for each declaration: what does not keep its promise has an effect twice."""
    app = "tests.acceptance.careless:app"
    done = casework("drill", "--kills", "1", "--app", app, "--json", TMPDIR=str(tmp_path))
    told = done.json
    assert (done.code, told["held"]) == (1, False)
    twice = told["scenarios"][0]["counts"]["duplicates_by_declaration"]
    assert set(twice) == DECLARATIONS
    assert min(twice.values()) >= 1
    others = [promise["text"] for promise in broken(told) if "first attempt" not in promise["text"]]
    assert others == ["No effect happened twice, at the destination or in a table"]
    assert Path(told["kept"]).is_dir()


def test_a_scenario_that_is_not_there_is_refused(casework: Callable[..., Done]) -> None:
    """A wrong name costs no stack, and the message has the right ones."""
    done = casework("drill", "--app", SAMPLE, "--only", "recoveries")
    assert done.code == 2
    assert "Choose from crash" in done.err
    assert "policy-change" not in done.err  # this application has no policy to change


def broken(told: Any) -> list[Any]:
    """Promises that did not hold."""
    return [promise for each in told["scenarios"] for promise in each["promises"] if not promise["held"]]
