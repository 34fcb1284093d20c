"""`casework policy`: the governed limits, loaded by their owner and shown to anyone who may read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option, table, when

DEFAULT_TENANT = "default"


@click.group()
def policy() -> None:
    """Load and show governed policy, as its owner."""


@policy.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="The tenant whose policy it is.")
@json_option
def load(path: Path, tenant: str, as_json: bool) -> int:
    """Replace the policy by the rows of FILE (CSV, JSON or YAML), all or nothing.

    A row without a purpose is refused and reported, the others are loaded; the exit code is then 1. Any other fault
    refuses the file (exit code 2).
    """
    from casework.cli import stack
    from casework.cli.direct import on_database
    from casework.policy.files import form_of, parse_policy
    from casework.store import policy as store
    from casework.store.roles import POLICY_OWNER
    from casework.values import plain

    parsed = parse_policy(_text(path), form_of(path.name), path.name)
    report = on_database(
        stack.load().database.policy_dsn(),
        POLICY_OWNER,
        lambda conn: store.load(conn, parsed.limits, tenant=tenant, source=path.name, refused=parsed.refused),
    )
    if as_json:
        emit_json(plain(report))
    else:
        click.echo(
            f"{report.loaded} rows loaded from {path}, {report.removed} replaced, {len(report.refused)} refused."
        )
        for row in report.refused:
            click.echo(f"Row {row['row']}: {row['reason']}.", err=True)
    return exits.FAILED if report.refused else exits.OK


def _text(path: Path) -> str:
    from casework.errors import PolicyFileError

    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PolicyFileError(f"{path} cannot be read: {error.strerror}. Name a file that can.") from None
    except UnicodeDecodeError as error:
        raise PolicyFileError(f"{path} is not UTF-8 ({error.reason} at byte {error.start}). Convert it.") from None


@policy.command()
@click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="The tenant whose policy it is.")
@json_option
def show(tenant: str, as_json: bool) -> None:
    """The limits in force, by purpose, and where they came from."""
    from casework.cli import stack
    from casework.cli.direct import on_database
    from casework.store import policy as store
    from casework.store.roles import RUNTIME
    from casework.values import plain

    rows = plain(on_database(stack.load().database.runtime_dsn(), RUNTIME, lambda conn: store.rows(conn, tenant)))
    if as_json:
        return emit_json({"items": rows})
    return table([_flat(row) for row in rows], _COLUMNS, "No policy. Load one with `casework policy load FILE`.")


_COLUMNS = {
    "purpose": "PURPOSE",
    "policy_name": "POLICY",
    "version": "VERSION",
    "min_score": "MIN SCORE",
    "auto_approve_ratio": "AUTO RATIO",
    "hard_decline_score": "DECLINE SCORE",
    "hard_decline_ratio": "DECLINE RATIO",
    "material_delinquencies": "MATERIAL",
    "source": "SOURCE",
    "synced_at": "LOADED",
}


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    return {**row["limits"], "source": row["source"], "synced_at": when(row["synced_at"])}
