"""`casework api` and `casework worker` as processes: they say where they are, and they drain when told to stop."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from casework.cli import exits

DEADLINE_S = 60


def environment(database_dsn: str, temporal_address: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CASEWORK_", "TEMPORAL_"))}
    return {
        **kept,
        "CASEWORK_DATABASE_URL": database_dsn,
        "TEMPORAL_ADDRESS": temporal_address,
        "CASEWORK_APP": "casework.examples.loan_underwriting:app",
    }


@contextmanager
def process(environ: dict[str, str], folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A `casework` process; killed at the end if it still runs."""
    command = [sys.executable, "-m", "casework", *arguments]
    with subprocess.Popen(command, env=environ, cwd=folder, stderr=subprocess.PIPE, text=True) as made:
        watchdog = threading.Timer(DEADLINE_S, made.kill)
        watchdog.start()
        try:
            yield made
        finally:
            watchdog.cancel()
            made.kill()


def line_with(running: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """The first line on stderr that has the pattern."""
    assert running.stderr is not None
    seen = []
    for text in running.stderr:
        seen.append(text)
        if found := re.search(pattern, text):
            return found
    raise AssertionError(f"no {pattern!r} in {''.join(seen)}")


def test_api_says_where_it_listens_and_drains_on_sigterm(
    database_dsn: str, temporal_address: str, tmp_path: Path
) -> None:
    """DA-47. API and worker are separate processes; a graceful stop drains."""
    with process(environment(database_dsn, temporal_address), tmp_path, "api", "--port", "0") as running:
        url = line_with(running, r"Listening on (http://127\.0\.0\.1:\d+)")[1]
        with httpx2.Client(base_url=url, trust_env=False) as client:
            assert client.get("/healthz").json() == {"status": "ok"}
            assert client.get("/readyz").json() == {"status": "ok"}
            assert client.get("/v1/runs").status_code == 401
        running.send_signal(signal.SIGTERM)
        assert running.wait(DEADLINE_S) == exits.OK


def test_worker_drains_on_sigterm(database_dsn: str, temporal_address: str, tmp_path: Path) -> None:
    """DA-47. SIGTERM: the worker ends what it has begun and leaves with 0."""
    with process(environment(database_dsn, temporal_address), tmp_path, "worker") as running:
        line_with(running, "worker is ready")
        running.send_signal(signal.SIGTERM)
        line_with(running, "draining")
        assert running.wait(DEADLINE_S) == exits.OK


def test_a_busy_port_is_told_in_a_sentence(database_dsn: str, temporal_address: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        environ = environment(database_dsn, temporal_address)
        with process(environ, tmp_path, "api", "--port", port) as running:
            _, err = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == exits.UNREACHABLE
    assert f"Port {port} of 127.0.0.1 is in use" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", [("api", "--port", "0"), ("worker",)], ids=["api", "worker"])
def test_a_database_that_is_away_is_told_in_a_sentence(
    temporal_address: str, tmp_path: Path, command: tuple[str, ...]
) -> None:
    environ = environment("postgresql://x:hunter2@127.0.0.1:9/x", temporal_address)
    with process(environ, tmp_path, *command) as running:
        _, err = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == exits.UNREACHABLE
    assert "127.0.0.1:9" in err
    assert "Traceback" not in err
    assert "hunter2" not in err


def test_a_namespace_that_is_not_there_is_told_in_a_sentence(
    database_dsn: str, temporal_address: str, tmp_path: Path
) -> None:
    environ = {**environment(database_dsn, temporal_address), "TEMPORAL_NAMESPACE": "no-such-namespace"}
    with process(environ, tmp_path, "worker") as running:
        _, err = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == exits.UNREACHABLE
    assert "no-such-namespace" in err
    assert "Traceback" not in err


def test_a_model_setting_that_means_no_model_ends_the_worker_at_its_start(
    database_dsn: str, temporal_address: str, tmp_path: Path
) -> None:
    environ = {**environment(database_dsn, temporal_address), "CASEWORK_MODEL": "scripted:nobody"}
    with process(environ, tmp_path, "worker") as running:
        _, err = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == exits.USAGE
    assert "CASEWORK_MODEL=scripted:nobody" in err
    assert "Traceback" not in err
