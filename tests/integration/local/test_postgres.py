"""The embedded PostgreSQL: it keeps data, heals after kills, and leaves strangers alone."""

from __future__ import annotations

import json
import os
import pwd
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from casework.children.identity import Identity, look, write_record
from casework.children.locks import FileLock
from casework.children.server import RunAs
from casework.errors import LocalStackError
from casework.store.local import LocalPostgres
from casework.store.local.binaries import hand_over, reason_against

from .conftest import gone, wait_until

Parent = Callable[[str, Path], tuple[subprocess.Popen[str], int]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place with a blank and letters beyond ASCII, under a folder that only its owner may enter."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    return private / "Zoë's stack? 100%20 #1" / "postgres"


@pytest.fixture
def server(folder: Path) -> Iterator[LocalPostgres]:
    with LocalPostgres(folder, options={"fsync": "off"}) as running:
        yield running


def ask(dsn: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def test_a_restart_keeps_data_password_and_port(server: LocalPostgres) -> None:
    ask(server.dsn, "CREATE TABLE kept (a int); INSERT INTO kept VALUES (7)")
    before = server.dsn
    server.stop()
    assert server.start() == before
    assert ask(server.dsn, "SELECT a FROM kept") == [(7,)]


def test_it_has_logical_wal_vectors_utf8_and_utc(server: LocalPostgres) -> None:
    ask(server.dsn, "CREATE EXTENSION vector")
    assert ask(server.dsn, "SELECT '[1,2]'::vector <-> '[1,2]'::vector") == [(0.0,)]
    shown = {name: ask(server.dsn, f"SHOW {name}")[0][0] for name in ("wal_level", "server_encoding", "timezone")}
    assert shown == {"wal_level": "logical", "server_encoding": "UTF8", "timezone": "UTC"}


def test_it_asks_for_the_password_and_keeps_secrets_private(server: LocalPostgres, folder: Path) -> None:
    password = (folder / "password").read_text()
    assert password not in server.dsn
    assert ask(f"postgresql://casework:{password}@127.0.0.1:{server.port}/casework", "SELECT 1") == [(1,)]
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(host="127.0.0.1", port=server.port, user="casework", dbname="casework", password="guess")
    for name in ("password", "pgpass", "postgres.log"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    # Rights of the folders above are as they were made.
    assert stat.S_IMODE(folder.parent.parent.stat().st_mode) == 0o700


def test_starting_twice_is_once(server: LocalPostgres) -> None:
    pid = server.pid
    server.start()
    assert server.pid == pid


def test_a_second_start_on_the_folder_is_refused_and_harms_nothing(server: LocalPostgres, folder: Path) -> None:
    with pytest.raises(LocalStackError, match="Another program runs postgres"):
        LocalPostgres(folder).start()
    assert ask(server.dsn, "SELECT 1") == [(1,)]


def test_killed_it_recovers(server: LocalPostgres) -> None:
    ask(server.dsn, "CREATE TABLE kept (a int); INSERT INTO kept VALUES (7)")
    killed = server.pid
    assert killed
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: server.pid is None, "the killed server is noticed")
    server.start()
    assert ask(server.dsn, "SELECT a FROM kept") == [(7,)]


def test_a_kill_of_the_parent_ends_the_server_or_leaves_it_to_the_next_start(folder: Path, parent: Parent) -> None:
    program, pid = parent("postgres", folder)
    program.kill()
    program.wait()
    with LocalPostgres(folder) as again:
        assert gone(pid)
        assert ask(again.dsn, "SELECT 1") == [(1,)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent died")
def test_a_server_dies_with_its_parent(folder: Path, parent: Parent) -> None:
    program, pid = parent("postgres", folder)
    program.kill()
    wait_until(lambda: gone(pid), "the server ends after its parent")


def test_a_server_left_behind_is_ended_because_the_record_proves_it_ours(folder: Path) -> None:
    """As on systems where no child hears of its parent's death: the server runs on, and nobody owns the folder."""
    first = LocalPostgres(folder)
    first.start()
    left = first.pid
    assert left
    first._server._owner.release()
    with LocalPostgres(folder) as second:
        wait_until(lambda: first.pid is None, "the server left behind has ended")
        assert second.pid != left
        assert ask(second.dsn, "SELECT 1") == [(1,)]


def test_a_stale_pid_file_that_names_a_living_stranger_heals_and_the_stranger_lives(
    folder: Path, server: LocalPostgres
) -> None:
    server.stop()
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        seen = look(stranger.pid)
        assert seen
        lines = [str(stranger.pid), str(folder / "data"), "1", str(server.port), "", "127.0.0.1", "1 1", "ready"]
        (folder / "data" / "postmaster.pid").write_text("\n".join(lines) + "\n")
        write_record(folder / "server.json", seen.identity)
        server.start()
        server.stop()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_stranger_who_holds_the_lock_is_left_alone_and_named(folder: Path, server: LocalPostgres) -> None:
    server.stop()
    holder = FileLock(folder / "server.lock")
    assert holder.acquire()
    us = look(os.getpid())
    assert us
    # The number is right and the start is not: an old record whose number was given to someone else.
    write_record(folder / "server.json", Identity(os.getpid(), "another start"))
    with pytest.raises(LocalStackError, match="not known to be ours, so it was left alone"):
        server.start()
    holder.release()
    server.start()


def test_a_server_started_by_hand_on_our_data_is_not_joined_by_a_second(folder: Path, server: LocalPostgres) -> None:
    server.stop()
    by_hand = LocalPostgres(folder)
    by_hand.start()
    # Without our locks it is what a person's own `postgres -D` would be.
    by_hand._server._owner.release()
    (folder / "server.lock").unlink()
    (folder / "server.json").unlink()
    try:
        with pytest.raises(LocalStackError, match=f"process {by_hand.pid}"):
            server.start()
        assert ask(by_hand.dsn, "SELECT 1") == [(1,)]
    finally:
        by_hand.stop()


def test_a_kill_while_the_cluster_is_made_leaves_nothing_half_made(folder: Path) -> None:
    (folder / "data.new").mkdir(parents=True)
    (folder / "data.new" / "PG_VERSION").write_text("18\n")
    with LocalPostgres(folder) as server:
        assert ask(server.dsn, "SELECT 1") == [(1,)]


@pytest.mark.parametrize("kept", ["", "garbage", "0", "70000", "busy"])
def test_a_port_that_cannot_be_had_is_chosen_around(folder: Path, server: LocalPostgres, kept: str) -> None:
    import socket

    server.stop()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (folder / "port").write_text(str(port) if kept == "busy" else kept)
        server.start()
        assert server.port not in {0, 70000, port}
        assert ask(server.dsn, "SELECT 1") == [(1,)]


def test_a_server_that_cannot_start_says_its_last_words(folder: Path) -> None:
    with pytest.raises(LocalStackError, match=r"did not start(.|\n)*no_such_setting"):
        LocalPostgres(folder, options={"no_such_setting": "1"}).start()


def test_the_record_holds_no_secret(folder: Path, server: LocalPostgres) -> None:
    assert set(json.loads((folder / "server.json").read_text())) == {"pid", "started"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as someone else")
class TestWithoutNamespaces:
    """Where the system grants no user namespace, an unprivileged user runs the server."""

    @pytest.fixture
    def nobody(self) -> RunAs:
        entry = pwd.getpwnam("nobody")
        return RunAs((entry.pw_uid, entry.pw_gid))

    def test_a_private_parent_is_out_of_reach_and_named(self, folder: Path, nobody: RunAs) -> None:
        folder.mkdir(parents=True)
        assert "cannot reach" in reason_against(nobody, folder)

    def test_the_folder_alone_is_handed_over(self, tmp_path: Path, nobody: RunAs) -> None:
        folder = tmp_path / "postgres"
        folder.mkdir()
        hand_over(folder, nobody)
        assert nobody.user
        assert folder.stat().st_uid == nobody.user[0]
        assert tmp_path.stat().st_uid == 0
        hand_over(folder, RunAs(nobody.user, namespace=True))
        assert folder.stat().st_uid == 0
