"""The play of the mail example tells what did not hold: what it finds is altered, and the promise about it breaks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casework.drills.promises import Report
from casework.examples.email_intake import play
from casework.examples.email_intake.submission import LettersFolder
from casework.examples.email_intake.watching import Desk, Row

DAY = "2026-11-30"


def row(number: int, **more: Any) -> Row:
    """A completed Transaction with a letter."""
    uuid = f"00000000-0000-4000-8000-{number:012}"
    data = {
        "application": {"applicant_id": f"APP-{number}", "amount": 27500},
        "decision": {"outcome": "approved"},
        "letter": {"day": DAY, "number": number, "file": f"{DAY}/{number:04}-{uuid}.pdf"},
        "repaired": "mended" if number == 1 else None,
    }
    made = {"uuid": uuid, "status": "COMPLETED", "natural_key": f"mail:{number}", "cloned_from": None, "data": data}
    runs = [{"task": "underwrite", "status": "COMPLETED"}]
    return {**made, "straight_through": True, "stages": [], "errors": [], "clones": [], "runs": runs, **more}


class StillDesk(Desk):
    """An API that has what a test puts there."""

    def __init__(self, rows: list[Row], mails: Path) -> None:
        super().__init__("http://127.0.0.1", "")
        self.rows, self.mails = rows, mails

    async def get(self, path: str) -> Row:
        """A Transaction, or the rounds."""
        if path.startswith("/v1/monitors"):
            return {"newest_rounds": [{"taken_in": 2, "repeated": 0, "bad": 0}]}
        return next(each for each in self.rows if path.endswith(each["uuid"]))

    async def post(self, path: str, body: Any = None) -> Row:  # as the API has it
        """Nothing."""
        return {}

    async def transactions(self) -> list[Row]:
        """Them."""
        return self.rows

    async def answer(self, words: Any) -> list[tuple[Row, str]]:  # as above
        """Nobody is asked; the mails are taken meanwhile."""
        for mail in self.mails.glob("*.eml"):
            mail.unlink()
        return []


async def _broken(home: Path, spoil: Callable[[list[Row], Path], object]) -> list[str]:
    """The promises that do not hold once `spoil` has been at rows and letters."""
    letters, mails = home / "letters", home / "mails"
    mails.mkdir()
    rows = [row(1), row(2)]
    for each in rows:
        (mails / f"{each['uuid']}.eml").write_bytes(b"")
    for each in rows:
        told = {**each["data"]["application"], "outcome": "approved", **each["data"]["letter"], "repaired": ""}
        entry = {name: str(value) for name, value in {**told, "purpose": "medical", "reference": each["uuid"]}.items()}
        LettersFolder(letters).write(entry)
    LettersFolder(letters).report(DAY)
    spoil(rows, letters)
    desk = StillDesk(rows, mails)
    report = Report("t", "t")
    try:
        await play.play(desk, report, mails, letters)
    finally:
        await desk.close()
    return [promise.text for promise in report.promises if not promise.held]


def _empty_report(rows: list[Row], letters: Path) -> None:  # as all have it
    for file in (letters / DAY).glob("*.json"):
        file.unlink()
    LettersFolder(letters).report(DAY)


def _other_letter(rows: list[Row], letters: Path) -> None:
    target = letters / rows[0]["data"]["letter"]["file"]
    entry = json.loads(target.with_suffix(".json").read_bytes())
    LettersFolder(letters).write({**entry, "outcome": "declined"})


@pytest.mark.parametrize(
    ("spoil", "broken"),
    [
        (lambda rows, letters: rows[1].update(natural_key="mail:1"), "came twice"),
        (lambda rows, letters: rows[1].update(status="ABORTED"), "aborted has its error"),
        (lambda rows, letters: rows[0].update(straight_through=False), "without a person"),
        (lambda rows, letters: rows[0].update(runs=[]), "has a decided run"),
        (lambda rows, letters: (letters / rows[0]["data"]["letter"]["file"]).unlink(), "has a letter"),
        (_other_letter, "has a letter"),
        (lambda rows, letters: rows[1]["data"]["letter"].update(number=1), "have one number"),
        (_empty_report, "report has every letter"),
        (lambda rows, letters: rows.pop(), "Every mail is a Transaction"),
    ],
)
async def test_what_is_not_so_breaks_its_promise(
    tmp_path: Path, spoil: Callable[[list[Row], Path], object], broken: str
) -> None:
    """And no promise that has nothing to do with it."""
    found = await _broken(tmp_path, spoil)
    assert any(broken in text for text in found), found


async def test_all_is_well_where_nothing_is_spoilt(tmp_path: Path) -> None:
    """Else the others would prove nothing."""
    assert await _broken(tmp_path, lambda rows, letters: None) == []
