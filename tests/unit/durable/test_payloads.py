"""Values on their way into histories: small ones as they are, large ones as blobs, all encrypted with keys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import WorkflowSerializationContext

from casework.durable.blobs import FolderBlobs
from casework.durable.keys import KeyFile, KeyRing
from casework.durable.payloads import BLOB, ENCRYPTED, Payloads
from casework.errors import InputError, PayloadUnreadableError, SettingsError

SMALL = Payload(metadata={"encoding": b"json/plain"}, data=b'{"name":"Ada"}')
LARGE = Payload(metadata={"encoding": b"json/plain"}, data=b'"' + b"lovelace " * 500 + b'"')
DENSE = Payload(metadata={"encoding": b"binary/plain"}, data=os.urandom(5000))


def key_file(folder: Path, *ids: str) -> Path:
    """A file with these keys, the last of which writes."""
    path, made = folder / "keys.json", KeyFile()
    for key_id in ids:
        made = made.with_new(key_id).written_by(key_id)
    made.save(path)
    return path


def codec(folder: Path, keys: Path | None = None, *, blobs: bool = True) -> Payloads:
    made = Payloads(FolderBlobs(folder / "blobs") if blobs else None, KeyRing(keys) if keys else None, 1024)
    return made.with_context(WorkflowSerializationContext("default", "run-1"))


def files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "blobs").rglob("*") if path.is_file())


@pytest.mark.parametrize("encrypted", [False, True])
async def test_values_come_back_as_they_were(tmp_path: Path, encrypted: bool) -> None:
    """DA-22. Small, large and incompressible ones, with keys and without."""
    given = [SMALL, LARGE, DENSE, Payload(), SMALL]
    made = codec(tmp_path, key_file(tmp_path, "k1") if encrypted else None)
    sent = await made.encode(given)
    assert await made.decode(sent) == given
    kinds = [each.metadata.get("encoding") for each in sent]
    assert kinds[1:3] == [BLOB, BLOB]
    assert kinds[0] == (ENCRYPTED if encrypted else b"json/plain")
    assert all(each.ByteSize() < 400 for each in sent)
    assert [path.stat().st_mode & 0o777 for path in files(tmp_path)] == [0o600, 0o600]
    stored = b"".join(path.read_bytes() for path in files(tmp_path)) + b"".join(each.data for each in sent)
    if encrypted:
        assert b"Ada" not in stored
        assert DENSE.data not in stored
    else:
        assert min(path.stat().st_size for path in files(tmp_path)) < LARGE.ByteSize() / 10  # compressed


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_replay_writes_no_further_blob(tmp_path: Path, encrypted: bool) -> None:
    """DA-22. The same value of the same run has the same name, so that a replay finds it there."""
    made = codec(tmp_path, key_file(tmp_path, "k1") if encrypted else None)
    first, again = await made.encode([LARGE]), await made.encode([LARGE])
    assert first == again
    [path] = files(tmp_path)
    assert path.parent.name == "run-1"
    other = made.with_context(WorkflowSerializationContext("default", "../../etc/x"))
    assert await other.decode(await other.encode([LARGE])) == [LARGE]
    assert all(path.is_relative_to(tmp_path / "blobs") for path in files(tmp_path))


async def test_keys_rotate_in_a_running_process(tmp_path: Path) -> None:
    """DA-22. One key writes, all read; a process takes up a new one from its file without a restart."""
    path = key_file(tmp_path, "k1")
    made = codec(tmp_path, path)
    old = await made.encode([SMALL, LARGE])
    KeyFile.load(path).with_new("k2").save(path)
    assert (await made.encode([SMALL]))[0].metadata["casework-key"] == b"k1"
    KeyFile.load(path).written_by(None).save(path)
    new = await made.encode([SMALL, LARGE])
    assert {each.metadata["casework-key"] for each in new} == {b"k2"}
    assert await made.decode([*old, *new]) == [SMALL, LARGE, SMALL, LARGE]


async def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """DA-22. No keys, another key, no store, a blob that is gone or changed: which one, and what to do."""
    path = key_file(tmp_path, "k1")
    small, large = await codec(tmp_path, path).encode([SMALL, LARGE])
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(PayloadUnreadableError, match=r"key 'k1', and this process has no keys.*CASEWORK_PAYLOAD_KEYS"):
        await codec(tmp_path).decode([small])
    with pytest.raises(PayloadUnreadableError, match=r"does not have .it has: k9"):
        await codec(tmp_path, key_file(other, "k9")).decode([small])
    with pytest.raises(PayloadUnreadableError, match="another key has this id"):
        await codec(tmp_path, key_file(other, "k1")).decode([small])
    with pytest.raises(PayloadUnreadableError, match=r"no blob store\. Set CASEWORK_BLOBS"):
        await codec(tmp_path, path, blobs=False).decode([large])
    [blob] = files(tmp_path)
    whole = blob.read_bytes()
    blob.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(PayloadUnreadableError, match="does not open"):
        await codec(tmp_path, path).decode([large])
    blob.unlink()
    with pytest.raises(PayloadUnreadableError, match="is missing in the store that CASEWORK_BLOBS names"):
        await codec(tmp_path, path).decode([large])


async def test_a_changed_blob_is_noticed_without_keys(tmp_path: Path) -> None:
    [large] = await codec(tmp_path).encode([DENSE])
    [blob] = files(tmp_path)
    blob.write_bytes(b"x" + blob.read_bytes()[1:])
    with pytest.raises(PayloadUnreadableError, match="is not what was kept"):
        await codec(tmp_path).decode([large])


async def test_a_reference_leads_nowhere_else(tmp_path: Path) -> None:
    """A name in a payload comes from outside: it does not lead out of the folder."""
    (tmp_path / "secret").write_text("secret")
    bad = Payload(metadata={"encoding": BLOB, "casework-blob": b"../secret", "casework-bytes": b"6"})
    with pytest.raises(PayloadUnreadableError, match="is no name of a blob"):
        await codec(tmp_path).decode([bad])


async def test_a_store_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file")
    with pytest.raises(PayloadUnreadableError, match="cannot be kept as a blob"):
        await codec(tmp_path).encode([LARGE])


def test_a_key_file_that_does_not_hold_is_refused(tmp_path: Path) -> None:
    """DA-22. Missing, readable by others, no key file: refused by name, and no key is in any word."""
    with pytest.raises(SettingsError, match="does not exist: make it with `casework keys add`"):
        KeyRing(tmp_path / "none.json")
    path = key_file(tmp_path, "k1")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        KeyRing(path)
    for text in (
        "",
        "[]",
        '{"writing": "k2", "keys": []}',
        '{"writing": null, "keys": [{"id":"a","made":"b","key":"aa"}]}',
    ):
        path.write_text(text)
        path.chmod(0o600)
        with pytest.raises(SettingsError, match="is no key file"):
            KeyRing(path)


def test_keys_have_ids_of_their_own() -> None:
    made = KeyFile().with_new(None).with_new(None)
    assert len(set(made.ids())) == 2
    for bad in ("", "a b", "a/b", "ä", "k" * 65):
        with pytest.raises(InputError, match="no id of a key"):
            made.with_new(bad)
    with pytest.raises(InputError, match="already"):
        made.with_new(made.ids()[0])
    with pytest.raises(InputError, match="no key 'none'"):
        made.written_by("none")
    assert made.keys[0].secret.hex() not in repr(made)
