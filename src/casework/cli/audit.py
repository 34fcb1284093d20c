"""`casework audit RUN_ID`: everything that is needed to reconstruct a run, from PostgreSQL, in one snapshot."""

from __future__ import annotations

import click

from casework.cli import exits
from casework.cli.output import emit_json, json_option


@click.command()
@click.argument("run_id")
@click.option("--tenant", default="default", show_default=True, help="The tenant whose run it is.")
@json_option
def audit(run_id: str, tenant: str, as_json: bool) -> int:
    """Policy versions, tool evidence, attempts, waits, recommendations and decisions of a run, in order.

    The exit code is 1 where the trail has a gap: a run that ended with an outcome no accepted decision gives, or an
    event number that is missing.
    """
    from uuid import UUID

    from casework.cli import audit_view, stack
    from casework.cli.direct import on_database
    from casework.cli.runs import checked_id
    from casework.errors import NotFoundError
    from casework.store.audit import trail
    from casework.store.roles import RUNTIME

    wanted = UUID(checked_id(run_id))
    found = on_database(stack.load().database.runtime_dsn(), RUNTIME, lambda conn: trail(conn, tenant, wanted))
    if found is None:
        raise NotFoundError(
            f"There is no run {wanted} of tenant {tenant!r}. `casework runs list` shows those there are."
        )
    told = found.to_plain()
    gaps = audit_view.gaps(told)
    emit_json({**told, "gaps": gaps}) if as_json else audit_view.print_trail(told, gaps)
    return exits.FAILED if gaps else exits.OK
