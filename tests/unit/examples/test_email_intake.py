"""The mail example without servers: its lines, its letters, and mails of every kind."""

from __future__ import annotations

import io
import shutil
from decimal import Decimal
from pathlib import Path

import pytest
from pypdf import PdfReader
from tests.unit.examples.loan_mails import Office
from tests.unit.sources.mails import library_mails

from casework.errors import SettingsError
from casework.examples.email_intake import letters, settings
from casework.examples.email_intake.application import modules
from casework.examples.email_intake.lines import processes
from casework.examples.email_intake.play import SAMPLES
from casework.examples.email_intake.settings import LoanMailSettings
from casework.process.admission import admit_all
from casework.process.injection import injector, users_of
from casework.process.statuses import DEFAULT_STATUSES
from casework.sources.imap import ImapMailbox

ROW = b"applicant_id,amount,purpose\nAPP-1002,8000.00,home improvement\n"


async def test_the_sample_mails_go_their_ways(tmp_path: Path) -> None:
    """BP-20, BP-25. Each is completed, mended or aborted; the one that was sent twice is one Transaction."""
    async with Office(tmp_path) as office:
        for sample in sorted(SAMPLES.glob("*.eml")):
            shutil.copy(sample, office.mails)
        await office.project.settle()
        ends = {str(row.data["file"])[:2]: row.status for row in office.rows if row.natural_key}
        done = dict.fromkeys(("01", "02", "03", "04"), "COMPLETED")
        assert ends == done | dict.fromkeys(("06", "07", "08", "09"), "ABORTED")
        assert sorted(office.codes) == ["BAD_AMOUNT", "CONTRADICTION", "NO_APPLICATION", "UNREADABLE_PDF"]
        assert len(office.asked) == 3, "the amount in euros is mended without a person"
        remarks = [fields.get("remark") for row in office.rows if isinstance(fields := row.data.get("fields"), dict)]
        assert "Wir möchten die Küche erneuern" in remarks, "a file that is no UTF-8 keeps its letters"
        clones = [row for row in office.rows if not row.natural_key]
        assert {row.status for row in clones} == {"COMPLETED"}
        assert sorted(run["amount"] for run in office.runs) == [
            *map(Decimal, ("5000.00", "8000.00", "12500.50", "15000.00", "22000.00", "27500.00"))
        ]
        assert not list(office.mails.glob("*.eml"))
        assert len(list((office.mails / "done").glob("*.eml"))) == 9


async def test_a_letter_says_what_was_decided_and_the_report_lists_it(tmp_path: Path) -> None:
    """Both are read back as PDF."""
    async with Office(tmp_path) as office:
        office.put("one", ("a.csv", ROW))
        office.put("two", ("b.CSV", ROW.replace(b"APP-1002", b"APP-1001")))
        await office.project.settle()
        for row in office.rows:
            letter = row.data["letter"]
            assert isinstance(letter, dict)
            text = _text((office.letters / str(letter["file"])).read_bytes())
            fields = row.data["fields"]
            assert isinstance(fields, dict)
            assert f"Applicant: {fields['applicant_id']}" in text
            assert "Decision: approved" in text
            assert str(row.uuid) in text
        (report,) = office.letters.glob("*/report.pdf")
        told = _text(report.read_bytes())
        assert [told.count(str(row.uuid)) for row in office.rows] == [1, 1]
        assert "Letters: 2" in told


@pytest.mark.parametrize(
    ("attachments", "code"),
    [
        ([], "NO_APPLICATION"),
        ([("notes.txt", b"hello")], "NO_APPLICATION"),
        ([("a.csv", b"")], "NOT_ONE_APPLICATION"),
        ([("a.csv", ROW + b"APP-1003,1.00,medical\n")], "NOT_ONE_APPLICATION"),
        ([("a.csv", b'applicant_id,amount\n"APP')], "UNREADABLE_CSV"),
        ([("a.csv", b"applicant_id,amount\nAPP-1002,8000.00\n")], "MISSING_FIELD"),
        ([("a.csv", ROW.replace(b"APP-1002", b"../etc"))], "BAD_APPLICANT"),
        ([("a.csv", ROW.replace(b"8000.00", b"8.000"))], "BAD_AMOUNT"),
        ([("a.csv", ROW.replace(b"8000.00", b"0"))], "BAD_AMOUNT"),
        ([("a.csv", ROW.replace(b"8000.00", b"2000000"))], "BAD_AMOUNT"),
        ([("a.csv", ROW.replace(b"8000.00", b"NaN"))], "BAD_AMOUNT"),
        ([("a.pdf", b"")], "UNREADABLE_PDF"),
        ([("a.pdf", b"%PDF-1.7 and no more")], "UNREADABLE_PDF"),
    ],
)
async def test_what_is_no_application_is_a_business_error(
    tmp_path: Path, attachments: list[tuple[str, bytes]], code: str
) -> None:
    """BP-23, BP-25. A person is asked, and the Transaction is ended."""
    async with Office(tmp_path) as office:
        office.put("mail", *attachments)
        await office.project.settle()
        (error,) = office.project.store.errors
        assert (error.code, error.type) == (code, "BUSINESS")
        assert [row.status for row in office.rows] == ["ABORTED"]
        assert len(office.asked) == 1
        assert not office.runs


async def test_two_mails_with_one_message_id_are_one_transaction(tmp_path: Path) -> None:
    """BP-20. In one poll and in two; another content makes no difference."""
    async with Office(tmp_path) as office:
        office.put("a", ("a.csv", ROW), message_id="<same@sample.example>")
        office.put("b", ("b.csv", ROW), message_id="<same@sample.example>")
        await office.project.settle()
        office.put("c", ("c.csv", ROW), message_id="<same@sample.example>")
        await office.project.settle()
        assert len(office.rows) == 1
        assert not list(office.mails.glob("*.eml"))


async def test_the_mails_that_python_tests_with_are_all_accounted_for(tmp_path: Path) -> None:
    """BP-20, BP-23. Malformed ones too: each is a Transaction, the same as one, or an error; the Monitor goes on."""
    samples = library_mails()
    async with Office(tmp_path) as office:
        for name, content in samples.items():
            (office.mails / f"{name}.eml").write_bytes(content)
        office.put("zz-last", ("a.csv", ROW))
        await office.project.settle()
        by_key = [row for row in office.rows if row.natural_key]
        files = {str(row.data["file"]) for row in by_key}
        refused = [
            error for error in office.project.store.errors if error.process == "intake" and error.task == "monitor"
        ]
        away = {file.name for file in (office.mails / "done").glob("*.eml")}
        assert len(away) + len(refused) == len(samples) + 1, "none is lost"
        assert files <= away
        assert {row.status for row in office.rows} <= {"COMPLETED", "ABORTED"}
        (last,) = [row for row in by_key if row.data["file"] == "zz-last.eml"]
        assert last.status == "COMPLETED"


def test_a_mailbox_takes_the_folders_place() -> None:
    """BP-22. By two settings; the constructors find what they ask for."""
    given = LoanMailSettings.load({settings.IMAP: "loans@mail.example:1993", settings.PASSWORD_FILE: "/run/secret"})
    assert given.mailbox is not None
    assert (given.mailbox.user, given.mailbox.host, given.mailbox.port) == ("loans", "mail.example", 1993)
    lines = admit_all(processes(mailbox=True), DEFAULT_STATUSES)
    assert lines["intake"].process.monitor is ImapMailbox
    injector(users_of(lines.values()), [modules(given)])


@pytest.mark.parametrize("place", ["mail.example", "@mail.example", "loans@", "loans@mail.example:imaps"])
def test_a_mailbox_that_is_not_written_so_is_refused(place: str) -> None:
    """The setting is named."""
    with pytest.raises(SettingsError, match=settings.IMAP):
        LoanMailSettings.load({settings.IMAP: place, settings.PASSWORD_FILE: "/run/secret"})


def test_a_mailbox_needs_its_password() -> None:
    """The setting that lacks is named."""
    with pytest.raises(SettingsError, match=settings.PASSWORD_FILE):
        LoanMailSettings.load({settings.IMAP: "loans@mail.example"})


def test_the_same_letter_has_the_same_bytes() -> None:
    """So a repeated task leaves one file as it was; a letter that the font lacks is a question mark."""
    entry = {"number": "1", "day": "2026-11-30", "reference": "r", "applicant_id": "Łukasz", "outcome": "approved"}
    assert letters.letter(entry) == letters.letter(entry)
    assert "Applicant: ?ukasz" in _text(letters.letter(entry))


def _text(content: bytes) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(content)).pages)
