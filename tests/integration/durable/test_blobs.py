"""What every store of blobs does: a folder, and an object store behind a real HTTP server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from casework.durable.blobs import Blobs, FolderBlobs, folder_of
from casework.durable.object_blobs import ObjectBlobs
from casework.errors import SettingsError
from tests.integration.durable.conftest import eventually
from tests.integration.durable.object_store import KEY, SECRET, S3Server, s3_server

STRANGE = ["plain", "a/b", "x y", "ä", "50%", "a=b", "tilde~", "..", "-", "x" * 400]
"""Owners can be any text that a workflow id can be."""
DIGITS = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(params=["folder", "object store"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Blobs:
    if request.param == "folder":
        return FolderBlobs(tmp_path / "blobs")
    server: S3Server = request.getfixturevalue("s3")
    enter(server, monkeypatch)
    return ObjectBlobs(server.make_bucket(f"b{uuid4().hex}"), marked_s=0)


def enter(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)


def name_of(owner: str, digits: str = DIGITS) -> str:
    return f"{folder_of(owner)}/{digits}"


@pytest.mark.parametrize("owner", STRANGE)
async def test_what_was_put_is_there(blobs: Blobs, owner: str) -> None:
    """DA-22."""
    assert not await blobs.has(name_of(owner))
    assert await blobs.get(name_of(owner)) is None
    await blobs.put(name_of(owner), b"data")
    assert await blobs.has(name_of(owner))
    assert await blobs.get(name_of(owner)) == b"data"


@pytest.mark.parametrize("size", [0, 1, 12_000_000])
async def test_data_of_any_size(blobs: Blobs, size: int) -> None:
    """DA-22. Also more than a client sends in one piece."""
    await blobs.put(name_of("run"), b"x" * size)
    assert await blobs.get(name_of("run")) == b"x" * size


async def test_the_same_twice(blobs: Blobs) -> None:
    await blobs.put(name_of("run"), b"data")
    await blobs.put(name_of("run"), b"data")
    assert await blobs.get(name_of("run")) == b"data"


@pytest.mark.parametrize("name", ["../secret", "run", f"run/{DIGITS[:-1]}", f"run/../{DIGITS}", f"a/b/{DIGITS}"])
async def test_a_name_leads_nowhere_else(blobs: Blobs, name: str) -> None:
    for doing in (blobs.put(name, b""), blobs.has(name), blobs.get(name)):
        with pytest.raises(OSError, match="is no name of a blob"):
            await doing


async def test_owners_are_those_that_put_nothing_for_so_long(blobs: Blobs) -> None:
    """DA-22. Each once, by its own name; a hashed one cannot be told and begins with a tilde."""
    for owner in STRANGE:
        await blobs.put(name_of(owner), b"data")
        await blobs.put(name_of(owner, DIGITS[::-1]), b"data")
    assert await blobs.owners(3600) == []

    async def all_of_them() -> bool:
        found = await blobs.owners(0)
        told = {owner for owner in found if not owner.startswith("~")}
        return len(found) == len(STRANGE) and told == set(STRANGE) - {"..", "x" * 400}

    await eventually(all_of_them, "all owners are found")


@pytest.mark.parametrize("by", ["has", "put"])
async def test_one_that_is_used_again_counts_as_new(blobs: Blobs, by: str) -> None:
    """DA-22. A blob that is there already is named by a history that is written now."""

    async def old() -> bool:
        return await blobs.owners(2) == ["run"]

    await blobs.put(name_of("run"), b"data")
    await eventually(old, "it is two seconds old")
    await (blobs.has(name_of("run")) if by == "has" else blobs.put(name_of("run"), b"data"))
    assert await blobs.owners(2) == []


async def test_what_is_removed_is_gone_and_nothing_else(blobs: Blobs) -> None:
    """DA-22."""
    for owner in ("run", "run2", "ru"):
        await blobs.put(name_of(owner), b"data")
    for each in range(3):
        await blobs.put(name_of("run", f"{each}{DIGITS[1:]}"), b"data")
    await blobs.remove("run")
    await blobs.remove("run")
    await blobs.remove("never there")
    assert not await blobs.has(name_of("run"))
    assert await blobs.get(name_of("run2")) == await blobs.get(name_of("ru")) == b"data"

    async def others() -> bool:
        return await blobs.owners(0) == ["ru", "run2"]

    await eventually(others, "the others are found")


async def test_a_mark_is_not_written_with_every_blob(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner counts as used for as long as its mark is not written again."""
    enter(s3, monkeypatch)
    url = s3.make_bucket(f"b{uuid4().hex}")
    writer, looker = ObjectBlobs(url, marked_s=3600), ObjectBlobs(url, marked_s=0)
    await writer.put(name_of("run"), b"data")

    async def found() -> bool:
        return await looker.owners(1) == ["run"]

    await eventually(found, "the mark is a second old")
    await writer.put(name_of("run", DIGITS[::-1]), b"data")
    assert await looker.owners(1) == ["run"]
    assert await writer.owners(0) == []


async def refusal(blobs: Blobs) -> str:
    """What is said where nothing can be kept; no word of it is secret."""
    with pytest.raises(OSError, match="s3://") as caught:
        await blobs.put(name_of("run"), b"data")
    told = str(caught.value)
    assert KEY not in told
    assert SECRET not in told
    assert caught.value.__cause__ is None
    return told


async def test_a_bucket_that_is_not_there_is_said(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-22."""
    enter(s3, monkeypatch)
    nowhere = ObjectBlobs("s3://nobodys-bucket/prefix")
    assert "there is no such bucket (NoSuchBucket)" in await refusal(nowhere)
    with pytest.raises(OSError, match="there is no such bucket"):
        await nowhere.get(name_of("run"))


async def test_credentials_that_are_refused_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-22. With the store's code, and without the credentials."""
    with s3_server(tmp_path, strict_after=1) as server:
        enter(server, monkeypatch)
        assert "it refuses this process (InvalidAccessKeyId)" in await refusal(ObjectBlobs(server.make_bucket("ours")))


async def test_a_store_that_is_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-22. Soon enough for the engine to try again."""
    enter(S3Server("http://127.0.0.1:9"), monkeypatch)
    assert "it does not answer" in await refusal(ObjectBlobs("s3://ours/prefix"))


@pytest.mark.parametrize("url", ["s3://key:secret@bucket/prefix", "s3://bucket/prefix?token=secret", "s3://b#secret"])
def test_a_url_with_a_secret_is_refused_without_it(url: str) -> None:
    """DA-22. Credentials are no part of a setting that is shown."""
    with pytest.raises(SettingsError, match=r"CASEWORK_BLOBS .* leave them out") as caught:
        ObjectBlobs(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://bucket/prefix", "s3:///prefix", "file:///tmp/blobs"])
def test_a_url_of_something_else_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match=r"no folder and no object store. Use a path, or s3://BUCKET/PREFIX"):
        ObjectBlobs(url)


def test_other_providers_are_entered_by_their_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """`gs://` and `az://` are the library's; what the environment lacks is said without its words."""
    with pytest.raises(SettingsError, match="the environment does not say how to reach it"):
        ObjectBlobs("az://container/prefix")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "ours")
    ObjectBlobs("az://container/prefix")
    ObjectBlobs("gs://bucket/prefix")


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-22."""
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(SettingsError, match=r"install casework\[objects\]"):
        ObjectBlobs("s3://bucket/prefix")
