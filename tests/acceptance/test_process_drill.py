"""`casework drill process` on real servers with SIGKILL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.conftest import Done


@pytest.mark.timeout(280)
def test_killed_workers_leave_each_transaction_once_at_each_task(casework: Callable[..., Done], tmp_path: Path) -> None:
    """BP-9, BP-10. Three kills: each Transaction passes each of three tasks once, and the books balance."""
    words = ["drill", "process", "--transactions", "200", "--kills", "3", "--kill-every", "0.3", "--json"]
    done = casework(*words, TMPDIR=str(tmp_path), timeout_s=270)
    told = done.json
    assert not [promise for promise in told["promises"] if not promise["held"]], done.err
    assert (done.code, told["held"], told["kept"]) == (0, True, None)
    assert len(told["promises"]) == 7
    counts = told["counts"]
    assert (counts["transactions"], counts["effects"], counts["kills"]) == (200, 200, 3)
    assert not list(tmp_path.glob("casework-process-*"))
