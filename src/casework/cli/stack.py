"""The stack that runs in this folder, as its files in the home folder (`.casework`) tell it; read here, never written.

`stack.json` has `api_url`, `database_url`, `admin_database_url`, `policy_database_url`, `temporal_address`; `token` is
the token of the principal `local`. The environment goes before: an outside server named there is used as it is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from casework.errors import InputError
from casework.settings import Secret, Settings

_NAMES = ("api_url", "database_url", "admin_database_url", "policy_database_url", "temporal_address")


@dataclass(frozen=True)
class StackRecord:
    """Where the local servers are, as written down; every part is None where no stack runs."""

    home: Path
    api_url: str | None = None
    database_url: str | None = None
    admin_database_url: str | None = None
    policy_database_url: str | None = None
    temporal_address: str | None = None

    def token(self) -> str | None:
        """The token of the principal `local`; None where there is none."""
        try:
            return (self.home / "token").read_text(encoding="utf-8").strip() or None
        except OSError:
            return None


def find(settings: Settings) -> StackRecord:
    """The stack of the home folder; an empty one where none runs.

    Raises:
        InputError: its file is there and cannot be read.
    """
    path = settings.app.home / "stack.json"
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return StackRecord(settings.app.home)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}). Start `casework dev` again; it writes it anew.") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} is not a JSON object. Start `casework dev` again; it writes it anew.")
    return StackRecord(settings.app.home, **{name: str(data[name]) for name in _NAMES if data.get(name)})


def joined(settings: Settings) -> Settings:
    """`settings` with the servers of the local stack where the environment names none."""
    stack = find(settings)
    database, temporal, histories = settings.database, settings.temporal, settings.histories
    if database.url is None and stack.database_url is not None:
        # All three together: a stack's owner must not migrate a database that the environment names.
        database = replace(
            database,
            url=Secret(stack.database_url),
            admin_url=database.admin_url or _secret(stack.admin_database_url),
            policy_url=database.policy_url or _secret(stack.policy_database_url),
        )
    if temporal.address is None and temporal.profile is None and stack.temporal_address is not None:
        temporal = replace(temporal, address=stack.temporal_address)
        if histories.blobs is None:
            histories = replace(histories, blobs=str(blobs_of(stack.home)))
    return replace(settings, database=database, temporal=temporal, histories=histories)


def blobs_of(home: Path) -> Path:
    """Where the local stack keeps large values; whole, since its processes may have other working folders."""
    return home.absolute() / "blobs"


def load() -> Settings:
    """The settings of the environment, joined with the local stack.

    Raises:
        SettingsError: a variable is unknown or not valid.
    """
    return joined(Settings.load())


def _secret(text: str | None) -> Secret | None:
    return None if text is None else Secret(text)
