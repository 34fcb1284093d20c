"""What the sources share: references to secrets, a keeper of contents, things set aside, and checked settings."""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from casework.errors import NotFoundError, SettingsError
from casework.sources.aside import MOST, SetAside
from casework.sources.attachments import FolderAttachments
from casework.sources.folder import FolderSettings
from casework.sources.imap import MailboxSettings
from casework.sources.references import SecretReference
from casework.sources.sql import SqlSettings

SECRET = SecretReference(variable="X")


def files_in(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file()]


def test_a_secret_is_named_and_never_shown() -> None:
    """By a variable or a file, exactly one; what is read shows stars."""
    assert SECRET.read("password", {"X": "s3cret"}).reveal() == "s3cret"
    assert "s3cret" not in repr(SECRET.read("password", {"X": "s3cret"}))
    for wrong in ({}, {"variable": "X", "file": "y"}, {"variable": " "}):
        with pytest.raises(SettingsError, match="Give one of the two"):
            SecretReference(**wrong)
    with pytest.raises(SettingsError, match=r"password: variable 'X' holds no secret\. Set it"):
        SECRET.read("password", {"X": " "})


def test_a_secret_in_a_file(tmp_path: Path) -> None:
    """Read each time, so that it can be changed; its last line's end is not part of it."""
    file = tmp_path / "secret"
    reference = SecretReference(file=str(file))
    for written, read in (("one\n", "one"), (" two \r\n", " two ")):
        file.write_text(written, newline="")
        assert reference.read("dsn").reveal() == read
    file.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="cannot be read"):
        reference.read("dsn")
    file.write_text("\n")
    with pytest.raises(SettingsError, match=r"holds no secret\. Write the secret into it"):
        reference.read("dsn")


async def test_contents_are_kept_once_and_found(tmp_path: Path) -> None:
    """The same content is the same file, whoever names it; many at a time do no harm."""
    kept = FolderAttachments(str(tmp_path / "new" / "folder"))
    found = await asyncio.gather(*(kept.keep(f"{n}.pdf", "application/pdf", b"content") for n in range(20)))
    assert set(found) == {f"sha256:{hashlib.sha256(b'content').hexdigest()}"}
    assert await kept.read(found[0]) == b"content"
    assert files_in(tmp_path / "new") == [kept.file(found[0])]
    assert await kept.read(await kept.keep("empty", "text/plain", b"")) == b""


@pytest.mark.parametrize("reference", ["", "sha256:../../etc/passwd", "sha256:" + "A" * 64, "sha1:" + "a" * 64])
async def test_what_is_no_reference_finds_nothing(tmp_path: Path, reference: str) -> None:
    """No path is made of what is not one of ours."""
    with pytest.raises(NotFoundError, match="is no reference"):
        await FolderAttachments(str(tmp_path)).read(reference)


async def test_a_content_that_is_gone_is_told(tmp_path: Path) -> None:
    """The reference and the folder."""
    with pytest.raises(NotFoundError, match="is not in"):
        await FolderAttachments(str(tmp_path)).read("sha256:" + "a" * 64)


@pytest.mark.parametrize("step", ["fsync", "replace"])
async def test_a_content_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Whole or not at all: a full disk leaves no half file, and the next attempt writes it."""
    kept = FolderAttachments(str(tmp_path))

    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, step, full)
        with pytest.raises(OSError, match="No space"):
            await kept.keep("a", "text/plain", b"content")
    assert files_in(tmp_path) == []
    assert await kept.read(await kept.keep("a", "text/plain", b"content")) == b"content"


async def test_a_path_that_is_no_folder_is_told(tmp_path: Path) -> None:
    """The setting, its value and the remedy."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SettingsError, match="which is no folder") as raised:
        await FolderAttachments(str(tmp_path / "file")).keep("a", "text/plain", b"x")
    assert raised.value.field == "path"


def test_what_failed_waits_longer_each_time() -> None:
    """Doubling to a longest pause; what went well is forgotten."""
    clock = [0.0]
    aside = SetAside(first_s=10, longest_s=30, clock=lambda: clock[0])
    for pause in (10, 20, 30, 30):
        assert not aside.waits("a")
        aside.put("a")
        clock[0] += pause - 1
        assert aside.waits("a")
        clock[0] += 1
    assert not aside.waits("b")
    aside.put("a")
    aside.forget("a")
    assert not aside.waits("a")


def test_what_is_set_aside_is_bounded() -> None:
    """The first are forgotten, and tried earlier than they would be."""
    aside = SetAside()
    for number in range(MOST + 1):
        aside.put(number)
    assert (aside.waits(0), aside.waits(1), aside.waits(MOST)) == (False, True, True)


MAILBOX = {"host": "mail.example.com", "user": "anna", "password": SECRET}
QUERY = {"name": "orders", "dsn": SECRET, "query": "select 1 as id", "key": "id"}


@pytest.mark.parametrize(
    ("settings", "given", "field"),
    [
        (MailboxSettings, {**MAILBOX, "host": " "}, "host"),
        (MailboxSettings, {**MAILBOX, "encryption": "ssl"}, "encryption"),
        (MailboxSettings, {**MAILBOX, "mails_per_poll": 0}, "mails_per_poll"),
        (MailboxSettings, {**MAILBOX, "move_to": "INBOX"}, "move_to"),
        (MailboxSettings, {**MAILBOX, "folder": "A", "refused_to": "A"}, "refused_to"),
        (FolderSettings, {"path": ""}, "path"),
        (FolderSettings, {"path": "x", "pattern": "../*"}, "pattern"),
        (FolderSettings, {"path": "x", "settle_s": -1}, "settle_s"),
        (FolderSettings, {"path": "x", "settle_s": float("nan")}, "settle_s"),
        (FolderSettings, {"path": "x", "delimiter": ";;"}, "delimiter"),
        (FolderSettings, {"path": "x", "encoding": "klingon"}, "encoding"),
        (FolderSettings, {"path": "x", "file_bytes": 0}, "file_bytes"),
        (SqlSettings, {**QUERY, "key": ""}, "key"),
        (SqlSettings, {**QUERY, "query": "select 1; select 2"}, "query"),
        (SqlSettings, {**QUERY, "statement_timeout_s": 0}, "statement_timeout_s"),
    ],
)
def test_settings_are_checked_when_they_are_made(settings: Any, given: dict[str, Any], field: str) -> None:
    """The field is named, its value and what to give."""
    with pytest.raises(SettingsError) as raised:
        settings(**given)
    assert raised.value.field == field
    assert field in str(raised.value)
    assert "Give" in str(raised.value) or "Name" in str(raised.value)


def test_settings_are_values_and_hold_no_secret() -> None:
    """They can be compared and shown; secrets are references."""
    assert MailboxSettings(**MAILBOX) == MailboxSettings(**MAILBOX)  # type: ignore[arg-type]  # as given above
    for settings in (MailboxSettings, SqlSettings):
        assert [each.name for each in fields(settings) if each.type == "SecretReference"]
    assert MailboxSettings(**MAILBOX).place == "mail.example.com:993"  # type: ignore[arg-type]  # as given above
