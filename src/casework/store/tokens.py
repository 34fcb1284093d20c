"""Bearer tokens: shown once when made, kept as SHA-256, looked up by it. Made and revoked by the migrating login."""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from casework.errors import BlankIdError, InputError
from casework.store import queries
from casework.store.database import Connection

_SQL = queries.load("tokens")
ROLES = ("viewer", "reviewer", "operator", "admin", "metrics")
PREFIX = "cw_"
_LONGEST = 200
_ID_LENGTH = 12
LONGEST_PRINCIPAL = 200
LONGEST_TENANT = 100
"""As long as a run's tenant may be."""
_NO_NAME = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Control characters (NUL, line ends), halves of characters, line and paragraph separators."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a token stands for."""

    name: str
    tenant: str
    roles: frozenset[str]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token in a list; `token_id` is the start of its hash, and says nothing of the token."""

    token_id: str
    tenant: str
    principal: str
    roles: list[str]
    created_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Found:
    principal: str
    tenant: str
    roles: list[str]


async def create(conn: Connection, principal: str, tenant: str, roles: Iterable[str]) -> str:
    """Make a token and return its text, which is nowhere kept. The login must own the schema (`role=None`).

    Raises:
        BlankIdError: principal or tenant is blank.
        InputError: no role is given, or one that does not exist; principal or tenant is too long or has characters
            that no name has.
    """
    wanted = sorted(set(roles))
    _check_name("principal", principal, LONGEST_PRINCIPAL)
    _check_name("tenant", tenant, LONGEST_TENANT)
    unknown = [role for role in wanted if role not in ROLES]
    if unknown or not wanted:
        named = ", ".join(map(repr, unknown)) or "none"
        raise InputError(f"roles: {named} given. Choose among {', '.join(ROLES)}.", field="roles")
    token = PREFIX + secrets.token_urlsafe(32)
    params = queries.Writing(tenant=tenant, hash=_hash(token), principal=principal, roles=wanted)
    await queries.run(conn, _SQL["create"], params)
    return token


def _check_name(field: str, text: str, longest: int) -> None:
    if not text.strip():
        raise BlankIdError(field, text)
    if len(text) > longest:
        raise InputError(f"{field} {text[:40]!r}... has {len(text):,} characters. Use at most {longest}.", field=field)
    odd = next((char for char in text if unicodedata.category(char) in _NO_NAME), None)
    if odd is not None:
        raise InputError(f"{field} {text!r} has the character {odd!r}. Use printable characters only.", field=field)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


async def find(conn: Connection, token: str) -> Principal | None:
    """Who `token` stands for; None where it is unknown or revoked."""
    if not token or len(token) > _LONGEST:
        return None
    found = await queries.one(conn, _SQL["find"], {"hash": _hash(token)}, _Found)
    return None if found is None else Principal(found.principal, found.tenant, frozenset(found.roles))


async def list_tokens(conn: Connection, tenant: str) -> list[TokenRow]:
    """All tokens of a tenant, newest first, the revoked ones too."""
    params = queries.Writing(tenant=tenant, length=_ID_LENGTH)
    return await queries.many(conn, _SQL["list"], params, TokenRow)


async def revoke(conn: Connection, tenant: str, token_id: str) -> bool:
    """Take back the token with this id (see `list_tokens`); whether there was one in use.

    Raises:
        InputError: the id fits more than one token.
    """
    if len(token_id) < _ID_LENGTH:
        return False
    params = queries.Writing(tenant=tenant, token_id=token_id)
    found = await queries.run(conn, _SQL["revoke"], params)
    if found > 1:
        raise InputError(f"{found} tokens have the id {token_id!r}. Pass more of the hash.", field="token_id")
    return found == 1
