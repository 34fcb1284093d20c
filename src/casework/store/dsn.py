"""The URL of a database: checked before it is used, and told without its secrets.

A password with a special character that is not percent-encoded moves the borders of the URL's parts: pieces of it are
then taken for host, port or database, and the driver's own messages show them. Such a URL is refused first.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from casework.errors import SettingsError, StoreUnavailableError

VARIABLE = "CASEWORK_DATABASE_URL"
Parts = dict[str, Any]
_TELLING = 3
"""A shorter secret is in every other word."""


def parsed(dsn: str) -> Parts:
    """The parts of a URL or `key=value` text.

    Raises:
        SettingsError: it does not parse, or its parts cannot be what was meant; no part of it is shown.
    """
    try:
        parts: Parts = dict(conninfo_to_dict(dsn))
    except (psycopg.Error, UnicodeError):
        raise _refused("does not parse") from None  # the driver's text shows pieces of the password
    if any("@" in str(parts.get(name) or "") for name in ("host", "hostaddr", "dbname", "port")):
        raise _refused("has an '@' in its host, port or database name")
    if not all(port.isdigit() or not port for port in str(parts.get("port") or "").split(",")):
        raise _refused("has a port that is no number")
    return parts


def _refused(why: str) -> SettingsError:
    return SettingsError(
        f"The database URL in {VARIABLE} (or CASEWORK_ADMIN_DATABASE_URL, CASEWORK_POLICY_DATABASE_URL) {why}. "
        "Write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and percent-encode special characters in user and "
        "password: a space as %20, '@' as %40, '/' as %2F, '%' as %25.",
        field=VARIABLE,
    )


def place(parts: Parts) -> str:
    """Host, port and database, for messages."""
    return f"{parts.get('host', 'local socket')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"


def options(parts: Parts, name: str, wait_s: float, silence_s: float) -> Parts:
    """What each connection is made with; a network that swallows packets is noticed after about `silence_s` seconds.

    What the URL says of these itself counts more.
    """
    ours = {
        "connect_timeout": max(2, int(wait_s)),
        "keepalives": 1,
        "keepalives_idle": max(1, int(silence_s / 2)),
        "keepalives_interval": max(1, int(silence_s / 8)),
        "keepalives_count": 4,
        "tcp_user_timeout": int(silence_s * 1000),
    }
    return {"application_name": name, **{key: value for key, value in ours.items() if key not in parts}}


def cannot_open(error: psycopg.Error, parts: Parts) -> StoreUnavailableError:
    """Why a connection could not be made or made ready, without secrets."""
    if error.sqlstate == "42501":
        remedy = "Let an administrator grant the role to this login: grant casework_runtime to LOGIN."
    elif error.sqlstate in {"22023", "42704"}:
        remedy = "Run `casework migrate`, which makes the roles and grants them to its login."
    else:
        remedy = f"Check {VARIABLE} and that PostgreSQL is up."
    return StoreUnavailableError(f"The database at {place(parts)} cannot be used: {_told(error, parts)}. {remedy}")


def _told(error: psycopg.Error, parts: Parts) -> str:
    text = str(error).strip()
    for name in ("password", "sslpassword"):
        if secret := str(parts.get(name) or ""):
            text = text.replace(secret, "***") if len(secret) >= _TELLING else text
    return text
