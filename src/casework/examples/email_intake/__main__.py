"""Loan applications by mail, from start to end: `python -m casework.examples.email_intake`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from casework.cli.rehearsing import Home, temporary_home
from casework.cli.telling import Teller, teller
from casework.drills.promises import BrokenOffError, Report
from casework.examples.email_intake import settings
from casework.examples.email_intake.play import SAMPLES, play
from casework.examples.email_intake.watching import Desk
from casework.store import tokens
from casework.store.database import Database
from casework.values import dumps

APP = "casework.examples.email_intake:app"
EVERY = {"pollingInterval": "PT1S", "sleepTime": "PT1S"}
"""The play's Monitors look each second; where nothing is said they do each minute."""
MONITORS = ("LoanMails", "ProcessingMonitor", "SubmissionMonitor", "ErrorMonitor")


def main(words: list[str] | None = None) -> int:
    """Play it; 0 only if every promise held."""
    parser = argparse.ArgumentParser(prog="python -m casework.examples.email_intake", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(words)
    voice = teller(quiet=given.json)
    with temporary_home("casework-mails-") as home:
        report, rows = asyncio.run(_played(home, voice))
        home.keep(not report.held)
    kept = None if report.held else home.path
    if given.json:
        print(dumps({"app": APP, **report.to_plain(), "transactions": rows, "kept": kept and str(kept)}))
    else:
        voice.verdict([report], kept)
    return 0 if report.held else 1


async def _played(home: Home, voice: Teller) -> tuple[Report, list[dict[str, Any]]]:
    report = Report("email-intake", "Loan applications by mail", voice.say)
    began = time.monotonic()
    mails = home.path / "mails"
    shutil.copytree(SAMPLES, mails)
    letters = home.path / "letters"
    _environment(home.path, mails, letters)
    stack = home.stack_maker(APP)()
    rows: list[dict[str, Any]] = []
    voice.heading(f"Starting PostgreSQL, Temporal, a worker and the API in {home.path}")
    async with stack:
        desk = Desk(stack.api_url, await _token(stack.admin_dsn))
        try:
            rows = await play(desk, report, mails, letters)
        except BrokenOffError as error:
            report.promise("The play came to its end", False, error)
        finally:
            await desk.close()
    report.seconds = time.monotonic() - began
    voice.heading("What was promised, and what held")
    voice.promises(report)
    return report, rows


def _environment(home: Path, mails: Path, letters: Path) -> None:
    """What worker and API of the play are started with: its folders, the shipped policy, quick Monitors."""
    monitors = home / "monitors.json"
    monitors.write_text(json.dumps({"monitors": [{"monitorClass": name, **EVERY} for name in MONITORS]}))
    for name in (settings.IMAP, settings.PASSWORD_FILE):
        os.environ.pop(name, None)
    os.environ |= {
        settings.FOLDER: str(mails),
        settings.KEPT: str(home / "attachments"),
        settings.LETTERS: str(letters),
        "CASEWORK_POLICY_FALLBACK": "fixture",
        "CASEWORK_MONITORS": str(monitors),
    }


async def _token(admin_dsn: str) -> str:
    """The token of the play's own person, who operates and reviews."""
    opening = Database.open(admin_dsn, role=None, max_size=1, name="email-intake")
    async with await opening as db, db.transaction() as conn:
        return await tokens.create(conn, "scripted reviewer", "default", ["operator", "reviewer", "viewer"])


if __name__ == "__main__":
    sys.exit(main())
