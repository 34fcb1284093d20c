"""`casework builds` in front of worker processes of two builds, and what `casework status` says of them."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from casework.cli import exits
from tests.docs.outputs import fits, shown
from tests.docs.pages import ROOT, blocks
from tests.integration.cli.conftest import Line
from tests.integration.cli.test_servers import environment, line_with, process


@pytest.fixture
def environ(database_dsn: str, temporal_address: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """For workers, and for the command line in this process."""
    made = {**environment(database_dsn, temporal_address), "CASEWORK_TASK_QUEUE": f"test-{uuid4().hex}"}
    for name in ("CASEWORK_DATABASE_URL", "TEMPORAL_ADDRESS", "CASEWORK_TASK_QUEUE"):
        monkeypatch.setenv(name, made[name])
    return made


def test_a_build_beside_the_old_one_is_made_current_and_taken_back(
    environ: dict[str, str], line: Line, tmp_path: Path
) -> None:
    """DA-47, DA-32. Workers get nothing until their build is current, and status says so; the commands change it."""
    assert "No worker of queue" in line("builds", "list")[1]
    with process({**environ, "CASEWORK_WORKER_BUILD": "one"}, tmp_path, "worker") as first:
        line_with(first, "worker is ready")
        code, out, _ = line("status")
        assert code == exits.FAILED
        assert "Nobody gets new runs: no build is current" in out
        assert "go to workers of build one" in line("builds", "make-current", "one")[1]
        with process({**environ, "CASEWORK_WORKER_BUILD": "two"}, tmp_path, "worker") as second:
            line_with(second, "worker is ready")
            code, _, err = line("builds", "make-current", "tow")
            assert (code, "'tow' has been seen" in err) == (exits.USAGE, True)
            assert line("builds", "make-current", "two")[0] == exits.OK
            found = line.json("builds", "list")
            assert [(each["name"], each["state"]) for each in found["builds"]] == [("two", "current"), ("one", "free")]
            assert line.json("builds", "make-current", "one")["current"] == "one"
            code, out, _ = line("builds", "list")
            assert out.splitlines()[1].split()[:3] == ["one", "current", "1"]
            assert "one current (1 at work)" in line("status")[1]
    assert line("builds", "make-current")[0] == exits.USAGE
    assert line("builds", "make-current", "one", "--unversioned")[0] == exits.USAGE
    assert "workers without a build" in line("builds", "make-current", "--unversioned")[1]


def test_a_name_that_cannot_be_a_build_ends_the_worker_at_its_start(environ: dict[str, str], tmp_path: Path) -> None:
    with process({**environ, "CASEWORK_WORKER_BUILD": "a:b"}, tmp_path, "worker") as running:
        _, err = running.communicate(timeout=60)
    assert running.returncode == exits.USAGE
    assert "CASEWORK_WORKER_BUILD is 'a:b'" in err


def test_the_page_of_versions_shows_what_is_printed(environ: dict[str, str], line: Line, tmp_path: Path) -> None:
    """DA-47. The commands of the page, in its order, with workers of the builds that it names."""
    queue = environ["CASEWORK_TASK_QUEUE"]
    page = [block for block in blocks(ROOT / "docs/operations/versions.md") if block.language == "console"]
    with (
        process({**environ, "CASEWORK_WORKER_BUILD": "2026-12-01"}, tmp_path, "worker") as first,
        process({**environ, "CASEWORK_WORKER_BUILD": "2026-12-08"}, tmp_path, "worker") as second,
    ):
        for running in (first, second):
            line_with(running, "worker is ready")
        calls = [each for block in page for each in shown(block)]
        assert [call.words[2] for call, _ in calls] == ["make-current"] * 2 + ["list"] + ["make-current"] * 2
        for call, output in calls:
            code, out, err = line(*call.words[1:])
            assert code == exits.OK, err
            assert fits(output.replace("queue casework", f"queue {queue}"), out), out
