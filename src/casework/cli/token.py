"""`casework token`: who may use the API. Works on the database itself, as its owner: a token cannot make tokens."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option, table, when

if TYPE_CHECKING:
    from casework.store.database import Connection

ROLES = ("viewer", "reviewer", "operator", "admin", "metrics")
DEFAULT_TENANT = "default"


@click.group()
def token() -> None:
    """Create, list and revoke access tokens."""


@token.command()
@click.argument("principal")
@click.option("--role", "roles", multiple=True, required=True, type=click.Choice(ROLES), help="May be given again.")
@click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="The tenant it belongs to.")
@json_option
def create(principal: str, roles: tuple[str, ...], tenant: str, as_json: bool) -> int:
    """Make a token for PRINCIPAL. Its text is shown once and stored only as a hash."""
    from casework.cli import stack
    from casework.cli.direct import on_database
    from casework.store import tokens

    dsn = stack.load().database.owner_dsn()

    async def make(conn: Connection) -> tuple[str, str]:
        made = await tokens.create(conn, principal, tenant, roles)
        # The id is the start of the stored hash; how much of it, the list says.
        digest = hashlib.sha256(made.encode()).hexdigest()
        ids = [row.token_id for row in await tokens.list_tokens(conn, tenant)]
        return made, next(each for each in ids if digest.startswith(each))

    made, token_id = on_database(dsn, None, make)
    if as_json:
        about = {"token_id": token_id, "principal": principal, "tenant": tenant, "roles": sorted(set(roles))}
        emit_json({**about, "token": made})
    else:
        click.echo(made)
        click.echo(f"Keep it: it is not shown again. Use it as CASEWORK_TOKEN. Its id is {token_id}.", err=True)
    return exits.OK


@token.command("list")
@click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="Whose tokens.")
@json_option
def list_(tenant: str, as_json: bool) -> None:
    """Tokens of a tenant, newest first, without their text."""
    from casework.cli import stack
    from casework.cli.direct import on_database
    from casework.store import tokens
    from casework.values import plain

    dsn = stack.load().database.owner_dsn()
    items = plain(on_database(dsn, None, lambda conn: tokens.list_tokens(conn, tenant)))
    if as_json:
        return emit_json({"items": items})
    shown = [
        {**item, "roles": ",".join(item["roles"]), "at": when(item["created_at"]), "gone": when(item["revoked_at"])}
        for item in items
    ]
    columns = {"token_id": "ID", "principal": "PRINCIPAL", "roles": "ROLES", "at": "CREATED", "gone": "REVOKED"}
    return table(shown, columns, "No tokens. Make one with `casework token create NAME --role viewer`.")


@token.command()
@click.argument("token_id")
@click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="Whose token it is.")
@json_option
def revoke(token_id: str, tenant: str, as_json: bool) -> int:
    """Take a token back by its id (see `token list`); it is refused from the next request on."""
    from casework.cli import stack
    from casework.cli.direct import on_database
    from casework.errors import NotFoundError
    from casework.store import tokens

    dsn = stack.load().database.owner_dsn()
    if not on_database(dsn, None, lambda conn: tokens.revoke(conn, tenant, token_id)):
        raise NotFoundError(f"There is no token {token_id!r} in use. `casework token list` shows the ids.")
    emit_json({"token_id": token_id, "revoked": True}) if as_json else click.echo(f"Token {token_id} is revoked.")
    return exits.OK
