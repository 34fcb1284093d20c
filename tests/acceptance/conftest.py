"""Acceptance tests run the `casework` command as a user does, on real processes and servers.

`casework`      runs the command and gives exit code and output
`stack`         one stack for the tests that only need one, with one worker; evidence comes from CSV files
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from casework.cli.supervisor import Stack
from casework.drills.client import Client
from casework.examples.loan_underwriting.settings import EVIDENCE_CSV
from casework.settings import Settings

APP = "casework.examples.loan_underwriting:app"
FIXTURE = Path(__file__).with_name("applications.csv")
ROOT = Path(__file__).parents[2]
TEST_DATA = ROOT / os.environ.get("CASEWORK_TEST_DATA", "../shared/data")
REAL = TEST_DATA / "loan_applications.csv"

Row = dict[str, str]


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on stdout."""
        assert self.out, f"nothing on stdout, exit code {self.code}: {self.err}"
        return json.loads(self.out)


def clean_environment(**env: str) -> dict[str, str]:
    """Our environment without what would lead commands to other servers, and `env` on top."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CASEWORK_", "TEMPORAL_"))}
    return {**kept, **env}


def run_casework(*words: str, timeout_s: float = 280, **env: str) -> Done:
    """Run `casework` without a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "casework", *words],
        check=False,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=clean_environment(**env),
    )
    return Done(done.returncode, done.stdout, done.stderr)


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def real_rows() -> list[Row]:
    """20 rows of the real applications: all kinds, joint ones and such without a ratio of their own included."""
    rows = read_rows(REAL)
    no_ratio = [row for row in rows if not row["debt_to_income_pct"]][:4]
    joint = [row for row in rows if row["application_type"] == "joint" and row not in no_ratio][:6]
    alone = [row for row in rows if row["application_type"] == "individual"][::450][:10]
    return [*no_ratio, *joint, *alone]


@dataclass(frozen=True)
class Running:
    """The shared stack: its folder for commands, and its API."""

    stack: Stack

    def casework(self, *words: str) -> Done:
        """Run a command against it."""
        return run_casework(*words, CASEWORK_HOME=str(self.stack.home))

    async def at_rest(self, run_ids: list[str]) -> list[dict[str, Any]]:
        """The runs' details when each awaits its review."""
        async with Client(self.stack.api_url, self.stack.token) as api:
            return [await api.until_review(run_id) for run_id in run_ids]


@pytest.fixture(scope="session")
def evidence_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of evidence for all applications that tests submit."""
    path = tmp_path_factory.mktemp("evidence") / "evidence.csv"
    rows = read_rows(FIXTURE) + (real_rows() if REAL.exists() else [])
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, evidence_csv: Path) -> Iterator[Running]:
    """A stack with the shipped policy and one worker."""
    made = Stack(tmp_path_factory.mktemp("stack") / ".casework", Settings(), APP)
    asyncio.run(_start(made, evidence_csv))
    try:
        yield Running(made)
    finally:
        asyncio.run(made.stop())


async def _start(made: Stack, evidence_csv: Path) -> None:
    await made.start(workers=0)
    try:
        await made.wait_ready(made.add_worker({EVIDENCE_CSV: str(evidence_csv)}))
    except BaseException:
        await made.stop()
        raise


@pytest.fixture(scope="session")
def casework() -> Callable[..., Done]:
    """Runs the command."""
    return run_casework
