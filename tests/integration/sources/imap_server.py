"""A real IMAP server in a process of its own, and what a test puts into its mailbox."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

USER, PASSWORD = "anna", "s3cret of anna"
VARIABLE = "TEST_IMAP_PASSWORD"
STARTS_S = 30.0
NEEDED = ("pymap", "imapclient")


@dataclass(frozen=True)
class ImapServer:
    """Its address on this machine. Nothing in it but an empty INBOX."""

    host: str
    port: int

    @contextmanager
    def client(self) -> Iterator[Any]:
        """A client of a person's, logged in, with INBOX open."""
        from imapclient import IMAPClient

        with IMAPClient(self.host, self.port, ssl=False, timeout=STARTS_S) as client:
            client.login(USER, PASSWORD)
            client.select_folder("INBOX")
            yield client

    def put(self, *mails: bytes, folder: str = "INBOX") -> None:
        with self.client() as client:
            for mail in mails:
                client.append(folder, mail)

    def make(self, *folders: str) -> None:
        with self.client() as client:
            for folder in folders:
                client.create_folder(folder)

    def subjects(self, folder: str = "INBOX") -> list[bytes]:
        """The subjects of all mails in a folder, sorted."""
        with self.client() as client:
            client.select_folder(folder, readonly=True)
            found = client.fetch(client.search("ALL"), ["ENVELOPE"])
            return sorted(each[b"ENVELOPE"].subject for each in found.values())

    def flags(self) -> list[set[bytes]]:
        """The flags of each mail in INBOX, the oldest first, without those that the server sets."""
        with self.client() as client:
            found = client.get_flags(sorted(client.search("ALL")))
            return [set(flags) - {b"\\Recent"} for flags in found.values()]


@contextmanager
def running(folder: Path, *options: str) -> Iterator[ImapServer]:
    """The server, ready; its log is in `folder`."""
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed; make setup")
    port = free_port()
    command = [sys.executable, "-c", "from pymap.main import main; main()", "--host", "127.0.0.1", "--port", str(port)]
    user = ["dict", "--demo-user", USER, "--demo-password", PASSWORD]
    with (folder / "imap.log").open("wb") as log:
        process = subprocess.Popen([*command, *options, *user], stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(process, port, folder / "imap.log")
            yield ImapServer("127.0.0.1", port)
        finally:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until it greets."""
    deadline = time.monotonic() + STARTS_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=STARTS_S) as found:
                if found.recv(4) == b"* OK":
                    return
        except ConnectionRefusedError:
            time.sleep(0.05)
    pytest.fail(f"the IMAP server did not start: {log.read_text()[-2000:]}")
