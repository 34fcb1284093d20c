"""Rows of CSV files as Transactions, and files and rows that cannot be read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from casework.sources.attachments import FolderAttachments
from casework.sources.folder import Bad, Entity, FolderOfFiles
from tests.integration.sources.projects import errors, keys, taken
from tests.integration.sources.test_folder import Fussy, box, folder, over

__all__ = ["box"]
NOBODY = 65534


async def whys(of: Path, **more: Any) -> dict[str, str]:
    """What is bad in a folder, and why."""
    found = await folder(of, **more).entities()
    return {entity.name: entity.why for entity in found if isinstance(entity, Bad)}


async def test_each_row_is_a_transaction(box: Path, kept: FolderAttachments) -> None:
    """BP-22: CSV rows. Quoted line ends, blank lines, a mark at the beginning, rows that are the same."""
    (box / "a.csv").write_bytes(b'\xef\xbb\xbfname, amount\r\n"Anna\nB.",10\r\n\r\nK\xc3\xa4the,\r\nK\xc3\xa4the,\r\n')
    async with over(folder(box, rows=True, done="done"), kept) as made:
        await made.run("intake")
        assert [(each.data["row"], each.data["values"]) for each in taken(made)] == [
            (1, {"name": "Anna\nB.", "amount": "10"}),
            (2, {"name": "Käthe", "amount": ""}),
            (3, {"name": "Käthe", "amount": ""}),
        ]
        digest = taken(made)[0].data["sha256"]
        assert keys(made) == [f"file:{digest}:a.csv#{row}" for row in (1, 2, 3)]
    assert (box / "done/a.csv").exists()


async def test_without_rows_a_csv_is_a_file(box: Path, kept: FolderAttachments) -> None:
    """The setting decides; other files are files in any case."""
    (box / "a.csv").write_bytes(b"name\nAnna\n")
    (box / "a.txt").write_bytes(b"name\nAnna\n")
    async with over(folder(box), kept) as made:
        await made.run("intake")
        assert [each.data["file"] for each in taken(made)] == ["a.csv", "a.txt"]
    async with over(folder(box, rows=True), kept) as made:
        await made.run("intake")
        assert ["values" in each.data for each in taken(made)] == [True, False]


async def test_a_file_is_moved_when_its_last_row_is_kept(box: Path, kept: FolderAttachments) -> None:
    """A poll takes so many rows; a crash between two polls takes none twice."""
    (box / "a.csv").write_text("n\n" + "".join(f"{n}\n" for n in range(5)))
    async with over(folder(box, rows=True, done="done", entities_per_poll=2), kept) as made:
        await made.run("intake")
        assert (len(keys(made)), (box / "a.csv").exists()) == (2, True)
        known = made.store.keys
    async with over(folder(box, rows=True, done="done", entities_per_poll=2), kept) as made:
        made.store.keys |= known
        await made.run("intake", polls=3)
        assert [each.data["values"]["n"] for each in taken(made)] == ["2", "3", "4"]
    assert (box / "done/a.csv").exists()


async def test_a_bad_row_does_not_stop_the_rest(box: Path, kept: FolderAttachments) -> None:
    """BP-20. Its number is told; the file is then one of those that were refused."""
    (box / "a.csv").write_text("what,n\none,1\ntwo\nrefuse,3\nfour,4,4\nfive,5\n")
    async with over(folder(box, rows=True, done="done", refused="refused"), kept, Fussy) as made:
        await made.run("intake", polls=2)
        assert [each.data["row"] for each in taken(made)] == [1, 5]
        told = [text for _, text in errors(made)]
        assert len(told) == 3
        assert "'a.csv'" in told[0]
        assert "row 2, has 1 fields, and the heading 2. Mend it and put it there again." in told[0]
        assert "row 4, has 3 fields" in told[2]
    assert (box / "refused/a.csv").exists()


async def test_a_row_that_failed_keeps_the_file(box: Path, kept: FolderAttachments) -> None:
    """What is not its own fault is tried again, after a while or by the next worker; only then is the file moved."""
    (box / "a.csv").write_text("what\none\nfail\nthree\n")
    async with over(folder(box, rows=True, done="done"), kept, Fussy) as made:
        await made.run("intake", polls=3)
        assert (len(keys(made)), len(errors(made))) == (2, 1)
        known = made.store.keys
    assert (box / "a.csv").exists()

    class Mended(Fussy):
        save_input_entity = FolderOfFiles.save_input_entity

    async with over(folder(box, rows=True, done="done"), kept, Mended) as made:
        made.store.keys |= known
        await made.run("intake")
        assert [each.data["row"] for each in taken(made)] == [2]
    assert (box / "done/a.csv").exists()


async def test_a_heading_without_rows_is_done(box: Path, kept: FolderAttachments) -> None:
    """A day without business is no fault."""
    (box / "a.csv").write_text("name,amount\n")
    async with over(folder(box, rows=True, done="done"), kept) as made:
        await made.run("intake")
        assert (taken(made), errors(made)) == ([], [])
    assert (box / "done/a.csv").exists()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"name\nK\xe4the\n", "is not utf-8-sig: byte 6, in line 2, cannot be read"),
        (b"", "has no heading: its first line is empty"),
        (b"name,,amount\na,b,c\n", "has a blank heading at column 2"),
        (b"name,name\na,b\n", "has the heading 'name' twice"),
        (b'name\n"not closed\nx\n', "is no CSV: unexpected end of data, in the row that ends at line 3"),
        (b"name\n" + b"x" * 200_000 + b"\n", "is no CSV: field larger than field limit (131072)"),
    ],
)
async def test_csv_that_cannot_be_read(box: Path, content: bytes, why: str) -> None:
    """The whole file is refused, so that no row of it is taken by a misreading."""
    (box / "a.csv").write_bytes(content)
    assert (await whys(box, rows=True))["a.csv"].startswith(why)


async def test_encoding_and_delimiter_are_set(box: Path, kept: FolderAttachments) -> None:
    """As the program that writes the file has them."""
    (box / "a.csv").write_bytes(b"name;amount\nK\xe4the;10,5\n")
    async with over(folder(box, rows=True, encoding="cp1252", delimiter=";"), kept) as made:
        await made.run("intake")
        assert taken(made)[0].data["values"] == {"name": "Käthe", "amount": "10,5"}


async def test_what_is_no_file_of_this_folder_is_refused(box: Path, tmp_path: Path, kept: FolderAttachments) -> None:
    """BP-22. Links out of the folder, folders, pipes, files too large: each is told, and the rest is taken."""
    (tmp_path / "secret.txt").write_bytes(b"not for you")
    (box / "a-link.txt").symlink_to(tmp_path / "secret.txt")
    (box / "b-dangling").symlink_to(tmp_path / "none")
    (box / "c-folder").mkdir()
    os.mkfifo(box / "d-pipe")
    (box / "e-large").write_bytes(b"x" * 1001)
    (box / "f.txt").write_bytes(b"x")
    assert await whys(box, file_bytes=1000) == {
        "a-link.txt": "is a symbolic link, which is not followed",
        "b-dangling": "is a symbolic link, which is not followed",
        "c-folder": "is a folder",
        "d-pipe": "is no regular file",
        "e-large": "has 1,001 bytes, over the limit of 1,000",
    }
    async with over(folder(box, file_bytes=1000, done="done", refused="refused"), kept) as made:
        await made.run("intake", polls=2)
        assert [each.data["file"] for each in taken(made)] == ["f.txt"]
        assert [code for code, _ in errors(made)] == ["UNREADABLE"] * 5
        assert f"file 'a-link.txt' in {str(box)!r} is a symbolic link" in errors(made)[0][1]
    assert sorted(os.listdir(box)) == ["c-folder", "d-pipe", "done", "refused"]
    assert (box / "refused/a-link.txt").is_symlink()
    assert (tmp_path / "secret.txt").read_bytes() == b"not for you"


async def test_a_file_that_may_not_be_read_does_not_stop_the_rest(kept: FolderAttachments) -> None:
    """BP-22. No permission: told; taken once it is granted, by the next worker at the latest."""
    with readable_by_all() as box:
        (box / "a.txt").write_bytes(b"a")
        (box / "b.txt").write_bytes(b"b")
        (box / "a.txt").chmod(0)
        with without_rights():
            assert await whys(box) == {"a.txt": "cannot be opened (Permission denied)"}
            assert len(await folder(box).entities()) == 2
        (box / "a.txt").chmod(0o644)
        async with over(folder(box), kept) as made:
            await made.run("intake")
            assert len(keys(made)) == 2


async def test_a_file_that_vanishes_does_not_stop_the_rest(box: Path, kept: FolderAttachments) -> None:
    """BP-22. Between finding and keeping somebody else takes it: one error, and it is not looked for again."""

    class Slow(Fussy):
        async def query_input_entities(self) -> Sequence[Entity]:
            found = await super().query_input_entities()
            (box / "a.txt").unlink(missing_ok=True)
            return found

    (box / "a.txt").write_bytes(b"a")
    (box / "b.txt").write_bytes(b"b")
    async with over(folder(box), kept, Slow) as made:
        await made.run("intake", polls=2)
        assert [each.data["file"] for each in taken(made)] == ["b.txt"]
        ((code, text),) = errors(made)
        assert (code, "file 'a.txt'" in text, "is gone" in text) == ("StateError", True, True)


async def test_a_name_that_is_no_text(box: Path, kept: FolderAttachments) -> None:
    """Names are bytes on many systems; what is no UTF-8 of them is replaced in the data."""
    (box / os.fsdecode(b"k\xe4the.txt")).write_bytes(b"x")
    async with over(folder(box, done="done"), kept) as made:
        await made.run("intake")
        assert taken(made)[0].data["file"] == "k\ufffdthe.txt"
    assert os.listdir(os.fsencode(box / "done")) == [b"k\xe4the.txt"]


@contextmanager
def readable_by_all() -> Iterator[Path]:
    """A folder that another user reaches."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user that owns nothing, where the test runs as root; other users have no right to such a file anyway."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)
