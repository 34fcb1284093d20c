"""`casework demo` without a terminal keeps its promises and says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.conftest import APP, Done


@pytest.mark.timeout(300)
def test_the_demo_without_a_terminal(casework: Callable[..., Done], tmp_path: Path) -> None:
    """DA-32, DA-36, DA-46. Evidence shows before the run ends, a killed worker costs nothing, a stale decision is
    refused, and the audit trail is whole."""
    done = casework("demo", "--app", APP, TMPDIR=str(tmp_path))
    assert done.code == 0, done.out + done.err
    assert "FAILED" not in done.out
    told = [
        r"income_verification\.1 COMPLETED",
        r"Worker \d+ was killed \(SIGKILL\): income_verification completed, credit_check in flight; so (is|are) \d",
        r"of the other cases",
        r"Worker \d+ was started",
        r"credit_check\.1 COMPLETED, attempt 2",
        r"The agent recommends: refer",
        r"automatic_approval_ratio +<= +36 +37\.89 +fail",
        r"The scripted reviewer asks for more information",
        r"Turn 2\. The agent recommends",
        r"A stale approval of the first review: HTTP 409",
        r"attempt 1 LOST",
        r"more_info, accepted",
        r"approve, accepted",
        r"The trail is whole",
        r"ok +The destination saw no effect twice +\(4 effects, \d calls: \d, over all cases, were in flight",
        r"Every promise held \(8 of 8\)",
    ]
    at = 0
    for pattern in told:
        found = re.compile(pattern).search(done.out, at)
        assert found, f"{pattern!r} is not told, or not in its place:\n{done.out}"
        at = found.end()
    assert not list(tmp_path.glob("casework-demo-*")), "the folder of a demo that went well is removed"


def test_an_application_without_a_rehearsal(casework: Callable[..., Done]) -> None:
    """Nothing is started, and the message says what to pass."""
    done = casework("demo", "--app", "tests.acceptance.bare:app")
    assert done.code == 2
    assert "Rehearsal" in done.err
