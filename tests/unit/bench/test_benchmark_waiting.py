"""The benchmark of waiting runs: what it holds to be broken, and what processes use."""

from __future__ import annotations

import os
import sys
from subprocess import PIPE, Popen

import pytest
from benchmarks.support.processes import cpu_seconds, family, pss_mb
from benchmarks.waiting import Standing, broken

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def crowd(**given: object) -> Standing:
    made = Standing(waiting=100, page_ms=[5.0, 6.0, 900.0], end="COMPLETED approved", left=99)
    for name, value in given.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"end": "FAILED None"}, "ended FAILED"),
        ({"left": 98}, "99 runs should wait"),
        ({"page_ms": [300.0, 5.0, 400.0]}, "takes 300 ms"),
    ],
)
def test_a_promise_that_is_not_kept_is_named(given: dict[str, object], named: str) -> None:
    """Every run waits on after the restart, the approved one ends, and the list answers at once."""
    [found] = broken(crowd(**given))

    assert named in found
    assert broken(crowd()) == []


def test_what_a_process_uses() -> None:
    """Its own and its children's, those that have ended included; one that is gone uses nothing."""
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(3 * 10**7))']); print(); input()"
    with Popen([sys.executable, "-c", script], stdin=PIPE, stdout=PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        assert child.pid in family(os.getpid())
        assert pss_mb(child.pid) > 1
        assert cpu_seconds(child.pid) >= 0.1
        child.communicate(b"\n")

    assert cpu_seconds(child.pid) == 0
    assert family(child.pid) == [child.pid]
