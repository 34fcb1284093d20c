"""Tokens, and workflows as applied."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from casework.errors import BlankIdError, FatalError, InputError, StoreUnavailableError
from casework.store import tokens, workflows
from casework.store.database import Database
from casework.store.tokens import Principal
from tests.integration.store.cases import TENANT, fetch


async def create(db: Database, name: str = "grace", *roles: str) -> str:
    async with db.transaction() as conn:
        return await tokens.create(conn, name, TENANT, roles or ("reviewer", "viewer"))


async def find(db: Database, token: str) -> Principal | None:
    async with db.transaction() as conn:
        return await tokens.find(conn, token)


async def test_token_is_found_and_nowhere_kept(db: Database, admin_db: Database) -> None:
    """DA-37. The runtime finds who a token stands for; the text itself is in no row."""
    token = await create(admin_db)
    assert await find(db, token) == Principal("grace", TENANT, frozenset({"reviewer", "viewer"}))
    rows = await fetch(admin_db, "select t::text as row from casework_auth.tokens t")
    assert len(rows) == 1
    assert token not in rows[0]["row"]
    assert token.removeprefix(tokens.PREFIX) not in rows[0]["row"]


@pytest.mark.parametrize("token", ["", "cw_wrong", "x" * 100_000, "\x00", "\ud800", "' or true --"])
async def test_wrong_tokens_are_nobody(db: Database, admin_db: Database, token: str) -> None:
    """DA-37. Empty, huge, odd and hostile texts stand for nobody, and break nothing."""
    await create(admin_db)
    assert await find(db, token) is None


async def test_revoked_token_is_nobody(db: Database, admin_db: Database) -> None:
    """A token is taken back by its id; the list still shows it. Another tenant cannot."""
    token = await create(admin_db)
    async with admin_db.transaction() as conn:
        (row,) = await tokens.list_tokens(conn, TENANT)
        assert not await tokens.revoke(conn, "other", row.token_id)
        assert not await tokens.revoke(conn, TENANT, row.token_id[:5])
        assert await tokens.revoke(conn, TENANT, row.token_id)
        assert not await tokens.revoke(conn, TENANT, row.token_id)
        (after,) = await tokens.list_tokens(conn, TENANT)
        assert await tokens.list_tokens(conn, "other") == []
    assert after.revoked_at is not None
    assert row.token_id not in token
    assert await find(db, token) is None


@pytest.mark.parametrize("roles", [(), ("root",), ("admin", "Admin")])
async def test_unknown_roles_are_refused(admin_db: Database, roles: tuple[str, ...]) -> None:
    """The message lists the roles there are."""
    async with admin_db.transaction() as conn:
        with pytest.raises(InputError, match="Choose among viewer, reviewer, operator, admin"):
            await tokens.create(conn, "grace", TENANT, roles)


async def test_blank_principal_is_refused(admin_db: Database) -> None:
    """Blank ids are refused at every door."""
    with pytest.raises(BlankIdError, match="principal"):
        await create(admin_db, "  ")


@pytest.mark.parametrize(
    ("field", "text"),
    [
        *(
            (field, text)
            for field in ("principal", "tenant")
            for text in ("a\x00b", "a\nb", "\x1b[31m", "\ud800", "\u2028")
        ),
        ("principal", "x" * 201),
        ("tenant", "x" * 201),
        ("tenant", "x" * 101),
    ],
)
async def test_odd_names_are_refused_before_the_database_sees_them(admin_db: Database, field: str, text: str) -> None:
    """DA-37. Control characters, half characters and too long names: an InputError that names the field."""
    given = {"principal": "grace", "tenant": TENANT, field: text}
    async with admin_db.transaction() as conn:
        with pytest.raises(InputError) as caught:
            await tokens.create(conn, **given, roles=["viewer"])
    assert caught.value.field == field
    assert len(str(caught.value)) < 300
    assert await fetch(admin_db, "select 1 from casework_auth.tokens") == []


async def test_long_names_and_those_of_all_scripts_are_taken(admin_db: Database) -> None:
    """DA-37. Up to the bound, whatever the script."""
    for name in ("x" * tokens.LONGEST_PRINCIPAL, "Zo\u00eb \u7530\u4e2d \U0001f600", "o'brien@example.com"):
        await create(admin_db, name)
    async with admin_db.transaction() as conn:
        assert await tokens.list_tokens(conn, "t\x00") == []
        assert await tokens.list_tokens(conn, "t\ud800") == []


async def test_runtime_makes_no_token(db: Database) -> None:
    """The runtime's role only looks tokens up."""
    with pytest.raises(StoreUnavailableError, match="lacks a right"):
        await create(db)


async def publish(db: Database, bundle: Any, hash_: str, name: str = "loan") -> int:
    async with db.transaction() as conn:
        return await workflows.publish(conn, TENANT, name, bundle, hash_)


async def test_versions_are_numbered_and_kept(db: Database) -> None:
    """Each new content is the next number; the latest again is that number; an old one applied again is a new one."""
    assert [await publish(db, {"n": n}, f"h{n}") for n in (1, 1, 2, 2, 1)] == [1, 1, 2, 2, 3]
    assert await publish(db, {"n": 1}, "h1", "other") == 1
    async with db.transaction() as conn:
        assert await workflows.latest(conn, TENANT, "loan") == (3, {"n": 1})
        assert await workflows.get(conn, TENANT, "loan", 2) == {"n": 2}
        assert await workflows.get(conn, TENANT, "loan", 4) is None
        assert await workflows.latest(conn, "other-tenant", "loan") is None
        assert await workflows.names(conn, TENANT) == {"loan": 3, "other": 1}


async def test_publishers_at_once_give_one_number(db: Database) -> None:
    """Several workers that start at once with the same content publish one version; different ones leave no hole."""
    assert set(await asyncio.gather(*(publish(db, {}, "same") for _ in range(8)))) == {1}
    made = await asyncio.gather(*(publish(db, {"n": n}, f"h{n}") for n in range(6)))
    assert sorted(made) == [2, 3, 4, 5, 6, 7]


async def test_bundle_keeps_its_digits(db: Database) -> None:
    """A limit in a manifest comes back with the digits it had."""
    await publish(db, {"budget": Decimal("10.50")}, "h")
    async with db.transaction() as conn:
        found = await workflows.latest(conn, TENANT, "loan")
    assert found is not None
    assert str(found[1]["budget"]) == "10.50"


async def test_bundle_that_a_row_cannot_hold_is_refused(db: Database) -> None:
    """A bundle is not cleaned: it would no longer be what its hash says."""
    with pytest.raises(FatalError, match="Remove it from the manifest"):
        await publish(db, {"prompt": "a\x00b"}, "h")
    with pytest.raises(BlankIdError):
        await publish(db, {}, "h", " ")
