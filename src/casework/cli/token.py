"""`casework token`: who may use the API. Works on the database itself, as its owner: a token cannot make tokens."""

from __future__ import annotations

from typing import Any

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option, table, when

ROLES = ("viewer", "reviewer", "operator", "admin")
DEFAULT_TENANT = "default"

tenant_option = click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="The tenant it belongs to.")


@click.group()
def token() -> None:
    """Create, list and revoke access tokens."""


@token.command()
@click.argument("principal")
@click.option("--role", "roles", multiple=True, required=True, type=click.Choice(ROLES), help="May be given again.")
@tenant_option
@json_option
def create(principal: str, roles: tuple[str, ...], tenant: str, as_json: bool) -> int:
    """Make a token for PRINCIPAL. Its text is shown once and stored only as a hash."""
    from casework.cli.direct import admin_url, on_database
    from casework.store import tokens

    made = on_database(admin_url(), None, lambda conn: tokens.create(conn, principal, tenant, sorted(set(roles))))
    if as_json:
        emit_json({"principal": principal, "tenant": tenant, "roles": sorted(set(roles)), "token": made})
    else:
        click.echo(made)
        click.echo("Keep it: it is not shown again. Use it as CASEWORK_TOKEN.", err=True)
    return exits.OK


@token.command("list")
@tenant_option
@json_option
def list_(tenant: str, as_json: bool) -> None:
    """Tokens of a tenant, without their text."""
    from casework.cli.direct import admin_url, on_database
    from casework.store import tokens

    rows = on_database(admin_url(), None, lambda conn: tokens.list_tokens(conn, tenant))
    items = [_plain(row) for row in rows]
    if as_json:
        return emit_json({"items": items})
    shown = [
        {**item, "roles": ",".join(item["roles"]), "at": when(item["created_at"]), "gone": when(item["revoked_at"])}
        for item in items
    ]
    columns = {"token_id": "TOKEN ID", "principal": "PRINCIPAL", "roles": "ROLES", "at": "CREATED", "gone": "REVOKED"}
    return table(shown, columns, "No tokens. Make one with `casework token create NAME --role viewer`.")


def _plain(row: Any) -> dict[str, Any]:
    from casework.values import plain

    made: dict[str, Any] = plain(row, "token")
    return made


@token.command()
@click.argument("token_id")
@tenant_option
@json_option
def revoke(token_id: str, tenant: str, as_json: bool) -> int:
    """Take a token back by its id (see `token list`); it is refused from the next request on."""
    from casework.cli.direct import admin_url, on_database
    from casework.errors import NotFoundError
    from casework.store import tokens

    done = on_database(admin_url(), None, lambda conn: tokens.revoke(conn, tenant, token_id))
    if not done:
        raise NotFoundError(f"There is no token {token_id!r} in use. `casework token list` shows them.")
    emit_json({"token_id": token_id, "revoked": True}) if as_json else click.echo(f"Token {token_id} is revoked.")
    return exits.OK
