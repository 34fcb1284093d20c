"""`casework dev`: real processes on one folder, killed, busy, doubled, outside, and stopped."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from casework.children.identity import Identity, is_alive
from casework.children.locks import FileLock
from casework.cli.supervisor import Stack
from casework.errors import LocalStackError, StateError
from casework.settings import Settings

APP = "casework.examples.loan_underwriting:app"
DEADLINE_S = 60.0


def wait_until(what: Callable[[], object], text: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < deadline, f"not in time: {text}"
        time.sleep(0.05)


class Dev:
    """A running `casework dev` and what it has said so far."""

    def __init__(self, home: Path, *options: str, **env: str) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CASEWORK_", "TEMPORAL_"))}
        words = [sys.executable, "-m", "casework", "dev", "--app", APP, "--home", str(home), *options]
        self.process = subprocess.Popen(
            words, env={**kept, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=home.parent
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def said(self, text: str) -> bool:
        return any(text in line for line in self.lines)

    def ready(self) -> Dev:
        wait_until(lambda: self.said("Ready.") or self.process.poll() is not None, "the stack is ready")
        assert self.process.poll() is None, "".join(self.lines)
        return self

    def facts(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.home / "stack.json").read_text())
        return found

    def processes(self) -> dict[str, Identity]:
        found = self.facts()["processes"]
        assert isinstance(found, dict)
        return {name: Identity(**each) for name, each in found.items()}

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(DEADLINE_S)
        self._reader.join(DEADLINE_S)
        return code

    def end_by_itself(self) -> int:
        self.process.wait(DEADLINE_S)
        return self.end()

    def is_another(self, name: str, before: Identity) -> bool:
        """Whether that part runs, and not as the process it was before."""
        now = self.processes().get(name, before)
        return now != before and is_alive(now)

    def get(self, path: str, token: str = "") -> int:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.get(f"{self.facts()['api_url']}{path}", headers=headers, trust_env=False).status_code


@pytest.fixture
def home(tmp_path: Path) -> Path:
    private = tmp_path / "Zoë's project? 100%20 #1"
    private.mkdir(mode=0o700)
    return private / ".casework"


@pytest.fixture
def dev(home: Path) -> Iterator[Callable[..., Dev]]:
    started: list[Dev] = []

    def start(*options: str, folder: Path | None = None, **env: str) -> Dev:
        started.append(Dev(folder or home, *options, **env))
        return started[-1]

    yield start
    for each in started:
        each.end()
        if each.process.stdout:
            each.process.stdout.close()


def test_it_starts_everything_says_where_stops_everything_and_keeps_the_data(
    dev: Callable[..., Dev], home: Path
) -> None:
    stack = dev("--workers", "2").ready()
    assert stack.get("/healthz") == stack.get("/readyz") == 200
    facts, processes = stack.facts(), stack.processes()
    assert set(processes) == {"postgres", "temporal", "api", "worker-1", "worker-2"}
    assert all(is_alive(each) for each in processes.values())
    said = "".join(stack.lines)
    for shown in (str(home / "token"), str(facts["api_url"]), str(facts["temporal_address"])):
        assert shown in said
    token, password = ((home / name).read_text().strip() for name in ("token", "postgres/password"))
    for secret in (token, password):
        assert secret not in said
        assert secret not in (home / "stack.json").read_text()
    assert stat.S_IMODE((home / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o700

    assert stack.end(signal.SIGINT) == 0
    assert not any(is_alive(each) for each in processes.values())
    assert not (home / "stack.json").exists()

    again = dev().ready()
    assert (home / "token").read_text().strip() == token
    for name in ("database_url", "temporal_address"):
        assert again.facts()[name] == facts[name]
    assert again.get("/v1/runs") == 401
    assert again.get("/v1/runs", token) == 200


def test_a_busy_port_is_chosen_around_and_a_second_stack_is_told_where_the_first_is(dev: Callable[..., Dev]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        first = dev("--port", str(port)).ready()
        assert first.said(f"Port {port} is busy")
        assert not str(first.facts()["api_url"]).endswith(f":{port}")
    second = dev()
    assert second.end_by_itself() == 3
    assert second.said(f"A stack already runs in {first.home}, its API is at {first.facts()['api_url']}")
    assert first.get("/readyz") == 200


def test_the_port_that_was_found_is_kept_while_the_wanted_one_is_busy(dev: Callable[..., Dev]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        first = dev("--port", port, "--workers", "0").ready()
        url = first.facts()["api_url"]
        assert first.end() == 0
        again = dev("--port", port, "--workers", "0").ready()
        assert again.facts()["api_url"] == url
        assert again.end() == 0
    assert str(dev("--port", port, "--workers", "0").ready().facts()["api_url"]).endswith(f":{port}")


def test_what_crashes_is_started_again(dev: Callable[..., Dev]) -> None:
    stack = dev().ready()
    shown = {"worker-1": "worker-1", "api": "api", "temporal": "Temporal", "postgres": "PostgreSQL"}
    before = stack.processes()
    assert set(before) == set(shown)
    for name, label in shown.items():
        os.kill(before[name].pid, signal.SIGKILL)
        wait_until(lambda name=name: stack.is_another(name, before[name]), f"{name} is another")  # type: ignore[misc]
        assert stack.said(f"{label} ended")
        if name in ("worker-1", "api"):
            wait_until(lambda name=name: stack.said(_again(stack, name)), "the new process is told")  # type: ignore[misc]
    wait_until(lambda: _answers(stack, "/readyz"), "the API serves again")


def test_a_kill_of_the_supervisor_is_healed_by_the_next_start(dev: Callable[..., Dev]) -> None:
    stack = dev().ready()
    processes, address = stack.processes(), stack.facts()["temporal_address"]
    stack.end(signal.SIGKILL)
    again = dev().ready()
    assert not any(is_alive(each) for each in processes.values())
    assert again.facts()["temporal_address"] == address
    assert again.get("/readyz") == 200


def test_a_signal_during_the_start_stops_what_was_started(dev: Callable[..., Dev], home: Path) -> None:
    stack = dev()
    wait_until((home / "postgres" / "data" / "postmaster.pid").exists, "PostgreSQL is on its way")
    assert stack.end() == 0
    assert not (home / "postgres" / "data" / "postmaster.pid").exists()
    for server in ("postgres", "temporal"):
        assert FileLock(home / server / "server.lock").acquire()


def test_outside_servers_are_used_and_none_is_started(
    dev: Callable[..., Dev], home: Path, database_dsn: str, temporal_address: str
) -> None:
    stack = dev(CASEWORK_DATABASE_URL=database_dsn, TEMPORAL_ADDRESS=temporal_address).ready()
    assert set(stack.processes()) == {"api", "worker-1"}
    assert stack.get("/readyz") == 200
    assert not (home / "postgres").exists()
    assert not (home / "temporal").exists()
    assert database_dsn not in (home / "stack.json").read_text()


def test_a_wrong_application_costs_nothing(home: Path, dev: Callable[..., Dev]) -> None:
    stack = dev("--app", "no.such.module:app")
    assert stack.end_by_itself() == 2
    assert stack.said("there is no module 'no'")
    assert not stack.said("Starting")
    assert not home.exists()


def test_a_setting_that_means_no_model_costs_nothing(home: Path, dev: Callable[..., Dev]) -> None:
    stack = dev(CASEWORK_MODEL="nobody-knows:this")
    assert stack.end_by_itself() == 2
    assert stack.said("CASEWORK_MODEL=nobody-knows:this")
    assert not stack.said("Starting")
    assert not home.exists()


async def test_a_stack_is_driven_as_a_library(home: Path) -> None:
    async with Stack(home, Settings.load({}), APP) as stack:
        assert stack.token == (home / "token").read_text().strip()
        first = stack.workers[0]
        second = stack.add_worker({"CASEWORK_DRILL_MARKS": "x"})
        await stack.wait_ready(second)
        killed = first.pid
        stack.kill_worker(first)
        assert killed
        assert first.pid is None
        assert [worker.pid for worker in stack.workers] == [second.pid]
        with pytest.raises(StateError, match="already runs"):
            await Stack(home, Settings.load({}), APP).start()
    assert second.pid is None


async def test_a_worker_that_cannot_start_says_its_last_words(home: Path, empty_database_dsn: str) -> None:
    async with Stack(home, Settings.load({"CASEWORK_DATABASE_URL": empty_database_dsn}), APP) as stack:
        broken = stack.add_worker({"CASEWORK_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"})
        with pytest.raises(LocalStackError, match=r"worker-2 ended with exit code 5(.|\n)*127.0.0.1:1"):
            await stack.wait_ready(broken)


def _again(stack: Dev, name: str) -> str:
    return f"{name} was started again (process {stack.processes()[name].pid})"


def _answers(stack: Dev, path: str) -> bool:
    try:
        return stack.get(path) == 200
    except httpx2.HTTPError:
        return False
