"""Blobs in an object store: `s3://bucket/prefix`, and what the client library gives beside it, `gs://` and `az://`.

    blobs/<owner>/<64 hexadecimal digits>   the data
    owners/<owner>                          empty; when it was last written says when the owner last put something

So to find owners that put nothing for a day is to list one small object for each of them, a request for a thousand,
and never the blobs. A process writes an owner's mark before its first blob and again after an hour, not with each blob;
owners are taken for that hour younger. An object store has no other way to say that something is in use again.

Credentials, region and endpoint are read by the client library from the environment, by the names of each provider, and
are kept nowhere here. What the library says of an error may quote a request, so none of its words are passed on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from casework.durable.blobs import folder_of, parts_of_name
from casework.errors import SettingsError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SETTING = "CASEWORK_BLOBS"
SCHEMES = ("s3", "gs", "az")
MARKED_S = 3600.0
"""For how long an owner's mark is not written again."""
MARKS = 10_000
"""Marks that are remembered before those that are too old are forgotten."""
REQUEST_LIMIT = timedelta(seconds=20)
CONNECT_LIMIT = timedelta(seconds=5)
RETRY_LIMIT = timedelta(seconds=10)
"""The engine tries again as well, and gives a workflow task ten seconds."""
AT_ONCE = 1000
"""Objects of a page of a listing, and of one request that removes them."""

_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_STATUS = re.compile(r"status code: (\d{3})")


class ObjectBlobs:
    """Blobs as objects below a URL.

    Raises:
        SettingsError: the URL is none of an object store, the extra is missing, or the environment lacks what the
            provider needs.
    """

    def __init__(self, url: str, marked_s: float = MARKED_S) -> None:
        self._store = _opened(url)
        self._place = url
        self._marked_s = marked_s
        self._marked: dict[str, float] = {}

    async def put(self, name: str, data: bytes) -> None:
        """As the port says. The mark comes first: no blob is without one."""
        owner, key = _key(name)
        with self._told():
            await self._mark(owner)
            await self._store.put_async(key, data)

    async def has(self, name: str) -> bool:
        """As the port says."""
        owner, key = _key(name)
        with self._told():
            try:
                await self._store.head_async(key)
            except FileNotFoundError:
                return False
            await self._mark(owner)
        return True

    async def get(self, name: str) -> bytes | None:
        """As the port says."""
        _, key = _key(name)
        with self._told():
            try:
                found = await self._store.get_async(key)
            except FileNotFoundError as missing:
                if _code(missing) == "NoSuchBucket":
                    raise
                return None
            return bytes(await found.bytes_async())

    async def owners(self, unused_s: float) -> list[str]:
        """As the port says."""
        before = datetime.now(UTC) - timedelta(seconds=unused_s + self._marked_s)
        with self._told():
            return sorted(_owner(path) for path, at in await self._listed("owners") if at < before)

    async def remove(self, owner: str) -> None:
        """As the port says. The mark goes last: what is left over is found again."""
        part = _part(folder_of(owner))
        with self._told():
            for paths in _pages([path for path, _ in await self._listed(f"blobs/{part}")]):
                await self._deleted(paths)
            await self._deleted([f"owners/{part}"])

    async def _mark(self, part: str) -> None:
        now = time.monotonic()
        if now < self._marked.get(part, float("-inf")) + self._marked_s:
            return
        await self._store.put_async(f"owners/{part}", b"")
        if len(self._marked) >= MARKS:
            self._marked = {each: at for each, at in self._marked.items() if now < at + self._marked_s}
        self._marked[part] = now

    async def _listed(self, prefix: str) -> list[tuple[str, datetime]]:
        found: list[tuple[str, datetime]] = []
        async for page in self._store.list(prefix, chunk_size=AT_ONCE):
            found += [(each["path"], each["last_modified"]) for each in page]
        return found

    async def _deleted(self, paths: list[str]) -> None:
        try:
            await self._store.delete_async(paths)
        except FileNotFoundError:  # another worker was first; what it has not removed yet it will
            return

    @contextmanager
    def _told(self) -> Iterator[None]:
        """An error of the library as one of ours, without its words."""
        from obstore.exceptions import BaseError  # noqa: PLC0415  # an extra

        try:
            yield
        except (BaseError, OSError) as error:
            raise OSError(f"{self._place}: {_trouble(error)}") from None


def _opened(url: str) -> ObjectStore:
    _check(url)
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415  # an extra
        from obstore.store import from_url  # noqa: PLC0415
    except ImportError as missing:
        raise SettingsError(
            f"{SETTING} is {url}, and no client for object stores is installed: install casework[objects].",
            field=SETTING,
        ) from missing
    # Options given here take the place of those in the environment. An endpoint that is written http:// is meant so.
    limits: Any = {"timeout": REQUEST_LIMIT, "connect_timeout": CONNECT_LIMIT, "allow_http": True}
    try:
        return from_url(url, client_options=limits, retry_config={"max_retries": 3, "retry_timeout": RETRY_LIMIT})
    except (BaseError, ValueError):
        raise SettingsError(
            f"{SETTING} is {url}, and the environment does not say how to reach it, or not in a valid way. Set the "
            "variables of its provider, such as AWS_REGION or AZURE_STORAGE_ACCOUNT_NAME.",
            field=SETTING,
        ) from None


def _check(url: str) -> None:
    """Refuse what is no plain URL of a bucket; nothing of one that may hold a secret is repeated."""
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise SettingsError(
            f"{SETTING} is a URL with more than a bucket and a prefix (hidden). Credentials are read from the "
            "environment: leave them out.",
            field=SETTING,
        )
    if parts.scheme not in SCHEMES or not parts.netloc:
        raise SettingsError(
            f"{SETTING} is {url:.100}, which is no folder and no object store. Use a path, or "
            f"{', '.join(f'{scheme}://BUCKET/PREFIX' for scheme in SCHEMES)}.",
            field=SETTING,
        )


def _trouble(error: Exception) -> str:
    """What is wrong, in our words, with the store's own code."""
    text, code = str(error), _code(error)
    if "/latest/api/token" in text or "CredentialProvider" in text:
        return "there are no credentials for it in the environment of this process"
    if type(error).__name__ in {"PermissionDeniedError", "UnauthenticatedError", "PermissionError"}:
        return f"it refuses this process ({code or 'not permitted'}). Mend the credentials, or what they may do"
    if isinstance(error, FileNotFoundError):
        return f"there is no such bucket ({code or 'not found'})"
    status = _STATUS.search(text)
    return f"it does not answer ({code or (status[1] if status else type(error).__name__)})"


def _code(error: Exception) -> str | None:
    found = _CODE.search(str(error))
    return found[1] if found else None


def _key(name: str) -> tuple[str, str]:
    """The owner's part, and the key of a blob."""
    owner, digest = parts_of_name(name)
    return _part(owner), f"blobs/{_part(owner)}/{digest}"


def _part(folder: str) -> str:
    """An owner's folder without the signs that clients and stores write in several ways."""
    return folder.replace("%", "=").replace("~", "=7E")


def _owner(path: str) -> str:
    return unquote(path.rpartition("/")[2].replace("=", "%"))


def _pages(paths: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(paths), AT_ONCE):
        yield paths[first : first + AT_ONCE]
