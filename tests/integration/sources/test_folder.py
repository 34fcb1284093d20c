"""Files of a folder become Transactions when they are whole, each once, and are moved when they are kept."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from casework.errors import BusinessError, SettingsError, StateError
from casework.process.local import LocalProject
from casework.sources.attachments import Attachments, FolderAttachments
from casework.sources.folder import Entity, File, Folder, FolderOfFiles, FolderSettings
from casework.sources.folder.files import Row
from tests.integration.sources.projects import errors, keys, project, taken


@pytest.fixture
def box(tmp_path: Path) -> Path:
    made = tmp_path / "box"
    made.mkdir()
    return made


def folder(box: Path, after_s: float = 60, **more: Any) -> Folder:
    """The folder as it is `after_s` seconds from now."""
    return Folder(FolderSettings(path=str(box), **more), now=lambda: time.time() + after_s)


def over(made: Folder, kept: FolderAttachments, monitor: type[FolderOfFiles] = FolderOfFiles) -> LocalProject:
    return project(monitor, folder=made, kept=(Attachments, kept))


async def names(made: Folder) -> list[str]:
    return [entity.name for entity in await made.entities() if isinstance(entity, File)]


async def test_each_file_becomes_a_transaction_and_is_moved(box: Path, kept: FolderAttachments) -> None:
    """BP-22: a folder of files is a source. The content lies beside the data; the key is hash and name."""
    (box / "a.pdf").write_bytes(b"%PDF-1.7 a")
    (box / "b.txt").write_bytes(b"b")
    async with over(folder(box, done="done"), kept) as made:
        await made.run("intake", polls=2)
        digest = hashlib.sha256(b"%PDF-1.7 a").hexdigest()
        first, second = taken(made)
        assert (first.natural_key, errors(made)) == (f"file:{digest}:a.pdf", [])
        assert first.data == {
            "file": "a.pdf",
            "sha256": digest,
            "size": 10,
            "media_type": "application/pdf",
            "reference": f"sha256:{digest}",
        }
        assert await kept.read(first.data["reference"]) == b"%PDF-1.7 a"
        assert second.data["media_type"] == "text/plain"
    assert sorted(os.listdir(box)) == ["done"]
    assert sorted(os.listdir(box / "done")) == ["a.pdf", "b.txt"]


async def test_files_that_stay_are_taken_once(box: Path, kept: FolderAttachments) -> None:
    """By this worker, and by one that starts after it; a file of that name with another content is another."""
    (box / "a.txt").write_bytes(b"one")
    async with over(folder(box), kept) as made:
        await made.run("intake", polls=2)
        (box / "a.txt").write_bytes(b"two")
        await made.run("intake", polls=2)
        assert len(keys(made)) == 2
        known = made.store.keys
    async with over(folder(box), kept) as made:
        made.store.keys |= known
        await made.run("intake")
        assert taken(made) == []


async def test_a_crash_between_keeping_and_moving_makes_no_second(box: Path, kept: FolderAttachments) -> None:
    """The file is found again, known by name and content, and moved then."""
    (box / "a.txt").write_bytes(b"one")
    async with over(folder(box, done="done"), kept) as made:
        made.store.keys.add(f"file:{hashlib.sha256(b'one').hexdigest()}:a.txt")
        await made.run("intake")
        assert taken(made) == []
    assert (box / "done/a.txt").read_bytes() == b"one"


async def test_a_file_that_is_being_written_waits(box: Path) -> None:
    """BP-22. Only what nothing has changed for the settling time is whole; each change begins it anew."""
    file = box / "a.txt"
    file.write_bytes(b"half")
    assert await names(folder(box, 4)) == []
    assert await names(folder(box, 6)) == ["a.txt"]
    changed = file.stat().st_ctime
    with file.open("ab") as writer:
        writer.write(b" and more")
    made = Folder(FolderSettings(path=str(box)), now=lambda: file.stat().st_ctime + 4.9)
    assert file.stat().st_ctime >= changed
    assert await names(made) == []


async def test_an_old_time_of_change_deceives_nobody(box: Path) -> None:
    """Programs that copy set a file's time of modification to that of their source, be it years ago."""
    (box / "a.txt").write_bytes(b"half")
    os.utime(box / "a.txt", (1, 1))
    assert await names(folder(box, 1)) == []


async def test_a_file_that_changes_while_it_is_read_waits(box: Path) -> None:
    """It is looked at before and after; what was read between two writes is not taken."""
    file = box / "a.txt"
    file.write_bytes(b"half")

    def meanwhile() -> float:
        with file.open("ab") as writer:
            writer.write(b" and more")
        return time.time() + 60

    assert await names(Folder(FolderSettings(path=str(box)), now=meanwhile)) == []
    assert await names(folder(box)) == ["a.txt"]


async def test_a_file_that_changes_before_it_is_kept_is_taken_as_it_is_then(box: Path, kept: FolderAttachments) -> None:
    """What was found is not what is there: an error, and the next poll finds the new one."""
    (box / "a.txt").write_bytes(b"old")
    made = folder(box, done="done")
    (entity,) = await made.entities()
    (box / "new").write_bytes(b"new")
    (box / "new").rename(box / "a.txt")
    with pytest.raises(StateError, match="was changed while it was taken"):
        await FolderOfFiles(made, kept).prepare_input_entity(entity)
    await made.taken(entity)
    assert (box / "a.txt").read_bytes() == b"new"
    (entity,) = await made.entities()
    assert (await FolderOfFiles(made, kept).prepare_input_entity(entity))["size"] == 3


async def test_a_file_that_is_renamed_into_place_is_whole(box: Path) -> None:
    """Names of files that are being written are ignored, whatever their age."""
    for name in (".a.txt.x1", "a.txt.part", "b.tmp", "~$c.docx", "d.txt~", "E.CRDOWNLOAD"):
        (box / name).write_bytes(b"half")
    assert await names(folder(box)) == []
    (box / "a.txt.part").rename(box / "a.txt")
    assert await names(folder(box)) == ["a.txt"]


async def test_only_names_of_the_pattern(box: Path) -> None:
    """The pattern is for names, in this folder alone."""
    for name in ("a.pdf", "b.PDF", "c.txt"):
        (box / name).write_bytes(b"x")
    (box / "inner").mkdir()
    (box / "inner/d.pdf").write_bytes(b"x")
    assert await names(folder(box, pattern="*.pdf")) == ["a.pdf"]


async def test_two_files_of_one_name_both_stay(box: Path, kept: FolderAttachments) -> None:
    """What was moved is never written over."""
    for content in (b"one", b"two", b"three"):
        (box / "a.txt").write_bytes(content)
        async with over(folder(box, done="done"), kept) as made:
            await made.run("intake")
    found = {each.name: each.read_bytes() for each in (box / "done").iterdir()}
    assert found == {"a.txt": b"one", "a~2.txt": b"two", "a~3.txt": b"three"}


async def test_a_mail_file_is_read_as_a_mail(box: Path, kept: FolderAttachments) -> None:
    """As a mailbox's, with the name of its file."""
    raw = b"Message-ID: <1@x>\nSubject: hello\nFrom: a@x\nDate: Tue, 1 Dec 2026 14:30:00 +0200\n\ntext\n"
    (box / "a.eml").write_bytes(raw)
    async with over(folder(box), kept) as made:
        await made.run("intake")
        (transaction,) = taken(made)
        assert (transaction.data["subject"], transaction.data["text"], transaction.data["file"]) == (
            "hello",
            "text",
            "a.eml",
        )
        assert await kept.read(transaction.data["original"]) == raw


class Fussy(FolderOfFiles):
    """Refuses rows and files as they say."""

    async def save_input_entity(self, entity: Entity) -> Mapping[str, Any]:
        made = await super().save_input_entity(entity)
        said = entity.values["what"] if isinstance(entity, Row) else made["file"]
        if "refuse" in said:
            raise BusinessError("not for us", code="NOT_OURS")
        if "fail" in said:
            raise KeyError("amount")
        return made


async def test_a_refused_file_goes_where_it_is_told_and_a_failed_one_stays(box: Path, kept: FolderAttachments) -> None:
    """BP-20: one bad file does not stop the rest, and is told once."""
    for name in ("a.txt", "fail.txt", "refuse.txt", "z.txt"):
        (box / name).write_bytes(name.encode())
    async with over(folder(box, done="done", refused="refused"), kept, Fussy) as made:
        await made.run("intake", polls=3)
        assert [each.data["file"] for each in taken(made)] == ["a.txt", "z.txt"]
        assert [code for code, _ in errors(made)] == ["KeyError", "NOT_OURS"]
    assert sorted(os.listdir(box)) == ["done", "fail.txt", "refused"]
    assert os.listdir(box / "refused") == ["refuse.txt"]


async def test_a_poll_takes_so_many(box: Path, kept: FolderAttachments) -> None:
    """The next goes on behind them, though they stay where they are."""
    for number in range(5):
        (box / f"{number}.txt").write_bytes(b"x")
    async with over(folder(box, entities_per_poll=2), kept) as made:
        for expected in (2, 4, 5, 5):
            await made.run("intake")
            assert len(keys(made)) == expected


async def test_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    """Field, value and remedy."""
    with pytest.raises(SettingsError) as raised:
        await folder(tmp_path / "none").entities()
    assert raised.value.field == "path"
    assert str(tmp_path / "none") in str(raised.value)
    assert "Make it" in str(raised.value)


async def test_where_files_cannot_be_moved_is_told(box: Path, kept: FolderAttachments) -> None:
    """The Transaction stays; the setting is named; the file is known again after a while, and moved then."""
    (box / "a.txt").write_bytes(b"x")
    (box / "done").write_bytes(b"no folder")
    later = [60.0]
    moved = Folder(FolderSettings(path=str(box), done="done/there"), now=lambda: time.time() + later[0])
    async with over(moved, kept) as made:
        await made.run("intake", polls=2)
        ((code, text),) = errors(made)
        assert (code, "done is 'done/there'" in text) == ("SettingsError", True)
        (box / "done").unlink()
        later[0] += 301
        await made.run("intake")
        assert (len(keys(made)), len(errors(made))) == (1, 1)
    assert (box / "done/there/a.txt").exists()


async def test_only_what_was_found_is_kept(box: Path, kept: FolderAttachments) -> None:
    """The hash that stands in the key is that of what is kept."""
    (box / "a.txt").write_bytes(b"x")
    made = folder(box)
    (entity,) = await made.entities()
    assert isinstance(entity, File)
    with pytest.raises(StateError, match="was changed"):
        await FolderOfFiles(made, kept).prepare_input_entity(replace(entity, sha256="0" * 64))
