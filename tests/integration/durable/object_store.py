"""An S3 server as a process of its own, with the environment that a client of it needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

KEY, SECRET = "AKIDOFTHISTEST", "a-secret-that-nobody-may-see"
_LISTENS = re.compile(r"Running on (http://127\.0\.0\.1:\d+)")


@dataclass(frozen=True)
class S3Server:
    """A server that runs. `environ` are the variables by which clients find and enter it."""

    address: str

    @property
    def environ(self) -> Mapping[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    def make_bucket(self, name: str) -> str:
        """Make a bucket; its URL with a prefix."""
        urlopen(Request(f"{self.address}/{name}", method="PUT")).close()
        return f"s3://{name}/case/work"


@contextmanager
def s3_server(folder: Path, *, strict_after: int | None = None) -> Iterator[S3Server]:
    """A server that asks nobody who they are; or, after so many requests, refuses keys that it does not know."""
    environ = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(strict_after or sys.maxsize)}
    command = [sys.executable, "-u", "-m", "moto.server", "-p", "0"]
    with (folder / "s3.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environ)
    try:
        yield S3Server(_address(folder / "s3.log", server))
    finally:
        server.kill()
        server.wait()


def _address(log: Path, server: subprocess.Popen[bytes]) -> str:
    until = time.monotonic() + 60
    while (found := _LISTENS.search(log.read_text())) is None:
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < until, "no S3 server within 60 s"
        time.sleep(0.05)
    return found[1]
