"""Keys by which values are encrypted: a file that only its owner reads, with one key that writes and any that read.

The file is read again when it has changed, so a running process knows a new key without a restart. A key never leaves
this module as text, but into its file.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from casework.errors import InputError, PayloadUnreadableError, SettingsError
from casework.values import instant

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
SETTING = "CASEWORK_PAYLOAD_KEYS"


@dataclass(frozen=True)
class Key:
    """One key. `made` is an instant."""

    id: str
    made: str
    secret: bytes = field(repr=False)

    @cached_property
    def _cipher(self) -> AESGCM:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  # an extra
        except ImportError as missing:
            raise SettingsError(
                f"{SETTING} is set, and encryption is not installed: install casework[encryption].", field=SETTING
            ) from missing
        return AESGCM(self.secret)

    def seal(self, data: bytes, about: bytes) -> bytes:
        """`data` encrypted, under a nonce of its own. It opens only with the same `about`."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, data, about)

    def open(self, sealed: bytes, about: bytes) -> bytes:
        """What was sealed.

        Raises:
            PayloadUnreadableError: it was changed, or sealed with another key under this id.
        """
        try:
            return self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], about)
        except Exception as error:
            raise PayloadUnreadableError(
                f"A value of a history does not open with key {self.id!r}: it was changed, or another key has this id "
                f"here. Give {SETTING} the file that the other processes have."
            ) from error

    def name_of(self, data: bytes) -> str:
        """64 hexadecimal digits that are the same for the same data, and tell nothing of it without the key."""
        derived = hmac.digest(self.secret, b"casework: names of blobs", hashlib.sha256)
        return hmac.new(derived, data, hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class KeyFile:
    """The content of a key file. `writing` is the id of the key that encrypts; None: none does yet."""

    keys: tuple[Key, ...] = ()
    writing: str | None = None

    @classmethod
    def load(cls, path: Path) -> KeyFile:
        """Read it.

        Raises:
            SettingsError: it is not there, others may read it, or it is no key file.
        """
        try:
            if path.stat().st_mode & 0o077:
                raise _refused(path, f"can be read by others: run `chmod 600 {path}`")
            data = json.loads(path.read_text(encoding="utf-8"))
            keys = tuple(Key(each["id"], each["made"], base64.b64decode(each["key"])) for each in data["keys"])
            made = cls(keys, data["writing"])
        except FileNotFoundError:
            raise _refused(path, "does not exist: make it with `casework keys add`") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _refused(path, f"is no key file ({type(error).__name__}): bring back a copy of it") from None
        wrong = any(len(key.secret) != KEY_BYTES for key in keys) or made.writing not in (None, *made.ids())
        if wrong:
            raise _refused(path, "is no key file (a key is missing or has another length): bring back a copy of it")
        return made

    def ids(self) -> tuple[str, ...]:
        """The ids of the keys, the oldest first."""
        return tuple(key.id for key in self.keys)

    def key(self, key_id: str) -> Key | None:
        """The key of that id."""
        return next((key for key in self.keys if key.id == key_id), None)

    def with_new(self, key_id: str | None) -> KeyFile:
        """The same with one more key, which reads and does not write yet. Without an id it is named by today's date.

        Raises:
            InputError: the id is taken, or is none.
        """
        made = key_id if key_id is not None else self._free_id()
        if _ID.fullmatch(made) is None:
            raise InputError(f"{made!r:.100} is no id of a key: use up to 64 letters, digits, '-', '_' and '.'.")
        if self.key(made) is not None:
            raise InputError(f"There is a key {made!r} already. Choose another id.")
        key = Key(made, instant(datetime.now(UTC)), secrets.token_bytes(KEY_BYTES))
        return replace(self, keys=(*self.keys, key))

    def written_by(self, key_id: str | None) -> KeyFile:
        """The same with another key that writes; without an id the newest.

        Raises:
            InputError: there is no such key, or it writes already.
        """
        newest = self.keys[-1].id if self.keys else None
        chosen = key_id or newest
        if chosen is None or self.key(chosen) is None:
            known = ", ".join(self.ids()) or "none"
            raise InputError(f"There is no key {chosen!r}. Keys: {known}. Make one with `casework keys add`.")
        if chosen == self.writing:
            raise InputError(
                f"Key {chosen!r} is the one that writes already. Make another with `casework keys add`, let every "
                "process have it, then rotate."
            )
        return replace(self, writing=chosen)

    def save(self, path: Path) -> None:
        """Write it, readable by its owner alone; at once or not at all."""
        keys = [{"id": each.id, "made": each.made, "key": base64.b64encode(each.secret).decode()} for each in self.keys]
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_name(f".{path.name}.{uuid4().hex}")
        try:
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                json.dump({"writing": self.writing, "keys": keys}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            made.replace(path)
        finally:
            made.unlink(missing_ok=True)

    def _free_id(self) -> str:
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        names = (today, *(f"{today}.{number}" for number in range(2, 1000)))
        return next((name for name in names if self.key(name) is None), uuid4().hex)


class KeyRing:
    """The keys of a process."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            SettingsError: as `KeyFile.load`; or the extra for encryption is not installed.
        """
        self._path = path
        self._seen = _stamp(path)
        self._file = KeyFile.load(path)
        for key in self._file.keys:
            key.open(key.seal(b"", b""), b"")

    def writing(self) -> Key | None:
        """The key that encrypts, if one does."""
        self._look()
        return self._file.key(self._file.writing) if self._file.writing is not None else None

    def reading(self, key_id: str) -> Key:
        """The key of that id.

        Raises:
            PayloadUnreadableError: this process does not have it.
        """
        key = self._file.key(key_id)
        if key is None:
            self._look()
            key = self._file.key(key_id)
        if key is None:
            raise PayloadUnreadableError(
                f"A value of a history is encrypted with key {key_id!r}, which {self._path} does not have (it has: "
                f"{', '.join(self._file.ids()) or 'none'}). Add it there; nothing is lost."
            )
        return key

    def _look(self) -> None:
        """Read the file again if it has changed. One that cannot be read now leaves the keys as they are."""
        stamp = _stamp(self._path)
        if stamp is None or stamp == self._seen:
            return
        try:
            self._file = KeyFile.load(self._path)
        except SettingsError:
            return
        self._seen = stamp


def _stamp(path: Path) -> Any:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _refused(path: Path, why: str) -> SettingsError:
    return SettingsError(f"{SETTING} names {path}, which {why}.", field=SETTING)
