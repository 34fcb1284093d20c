"""Child processes: recognised only for what they are, stopped in steps, gone with their parent."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from casework.children import launch, server
from casework.children.files import write_private
from casework.children.identity import Identity, is_alive, look, read_record, write_record
from casework.children.locks import FileLock
from casework.children.ports import free_port, is_free, kept_port
from casework.children.server import RunAs, ServerProcess, StopStep, launcher
from casework.errors import LocalStackError

from .conftest import gone, wait_until

SAYS_READY = "import time; print('ready', flush=True); time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SAYS_READY

HAS_HELPER = f"""
import subprocess, sys
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], close_fds=False)
print(helper.pid, flush=True)
{SAYS_READY}
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path / "a server", "sleeper", [StopStep(signal.SIGTERM, 0.2)], marker="sleep")
    yield made
    made.stop()


def started(process: ServerProcess, code: str = SAYS_READY) -> int:
    process.claim()
    process.spawn(python(code))
    wait_until(lambda: "ready" in process.log_tail() or not process.pid, "the program speaks")
    assert process.pid
    return process.pid


def test_a_process_is_known_by_id_and_start() -> None:
    seen = look(os.getpid())
    assert seen
    assert is_alive(seen.identity)
    assert not is_alive(Identity(os.getpid(), "another start"))


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1])
def test_a_number_that_is_no_process_is_nobody(pid: int) -> None:
    assert look(pid) is None


def test_a_dead_child_that_nobody_collected_is_not_alive() -> None:
    child = subprocess.Popen(python(""))
    wait_until(lambda: look(child.pid) is None, "the dead child is seen as dead")
    assert child.returncode is None
    child.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"pid": "x"}', '{"pid": 1}', "\0", "9" * 5000])
def test_an_unreadable_record_proves_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "record").write_text(text)
    assert read_record(tmp_path / "record") is None


def test_a_record_is_kept_privately(tmp_path: Path) -> None:
    write_record(tmp_path / "record", Identity(7, "then"))
    assert read_record(tmp_path / "record") == Identity(7, "then")
    assert stat.S_IMODE((tmp_path / "record").stat().st_mode) == 0o600


def test_a_private_file_replaces_what_was_readable_by_all(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")
    (tmp_path / "token").chmod(0o644)
    write_private(tmp_path / "token", "new")
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_a_lock_is_held_by_whoever_inherited_it_until_the_last_is_gone(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.acquire()
    child = subprocess.Popen(python(SAYS_READY), pass_fds=(lock.descriptor,))
    lock.release()
    assert not FileLock(tmp_path / "lock").acquire()
    child.kill()
    child.wait()
    assert lock.acquire()
    lock.release()
    with pytest.raises(RuntimeError, match="not held"):
        _ = lock.descriptor


def test_a_port_is_kept_where_it_is_free(tmp_path: Path) -> None:
    port = kept_port(tmp_path / "port")
    assert kept_port(tmp_path / "port") == port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        assert not is_free(port)
        assert free_port(port) != port
        assert kept_port(tmp_path / "port") != port


def test_a_program_is_asked_to_stop(process: ServerProcess) -> None:
    pid = started(process)
    process.ask_to_stop()
    wait_until(lambda: process.exit_code is not None, "it ends")
    assert process.exit_code == -signal.SIGTERM
    process.stop()
    assert gone(pid)


def test_a_deaf_program_is_killed_after_the_grace(process: ServerProcess) -> None:
    pid = started(process, DEAF)
    process.stop()
    assert gone(pid)


def test_a_killed_program_can_be_started_again(process: ServerProcess) -> None:
    os.kill(started(process), signal.SIGKILL)
    wait_until(lambda: process.exit_code == -signal.SIGKILL, "the kill is noticed")
    assert started(process)


def test_a_program_that_left_a_child_behind_keeps_its_folder_claimed(process: ServerProcess) -> None:
    """A server's helper may outlive it for a moment; a new server beside it would meet its files in use."""
    os.kill(started(process, HAS_HELPER), signal.SIGKILL)
    helper = int(process.log_tail().split()[0])
    try:
        wait_until(lambda: process.exit_code is not None, "the kill is noticed")
        with pytest.raises(LocalStackError, match="not known to be ours"):
            process.claim()
        assert not gone(helper)
    finally:
        os.kill(helper, signal.SIGKILL)
    process.claim()


def test_a_large_log_is_turned_once(process: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LOG_LIMIT_BYTES", 3)
    started(process)
    process.stop()
    started(process)
    assert process.log.with_suffix(".log.1").read_text() == "ready\n"
    assert process.log.read_text() == "ready\n"
    assert stat.S_IMODE(process.log.stat().st_mode) == 0o600


def test_the_last_words_may_be_any_bytes(process: ServerProcess) -> None:
    process.folder.mkdir(parents=True)
    process.log.write_bytes(b"\xff\0first\nlast")
    assert process.log_tail(lines=1) == "last"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*launcher(), *words], capture_output=True, text=True, check=False)


def test_what_cannot_be_run_is_told() -> None:
    done = run("/nonexistent/program")
    assert done.returncode == launch.NOT_RUN
    assert "/nonexistent/program: No such file" in done.stderr


def test_a_child_whose_parent_is_gone_does_not_begin() -> None:
    words = [word.replace(f'"parent": {os.getpid()}', '"parent": 1') for word in launcher()]
    done = subprocess.run([*words, "/bin/true"], capture_output=True, text=True, check=False)
    assert done.returncode == launch.ORPHANED


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="user namespaces are entered by root on Linux")
def test_inside_a_namespace_root_is_nobody_and_its_files_are_roots(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    words = launcher(RunAs((65534, 65534), namespace=True), reach=[tmp_path])
    code = f"import os; print(os.getuid()); open({str(tmp_path / 'file')!r}, 'w')"
    done = subprocess.run([*words, *python(code)], capture_output=True, text=True, check=False)
    if done.returncode == launch.REFUSED:
        pytest.skip(f"this system grants no user namespace: {done.stderr}")
    assert done.stdout == "65534\n"
    assert (tmp_path / "file").stat().st_uid == 0
