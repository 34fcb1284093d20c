"""Whether this process speaks to the engine that the database's runs are in.

A namespace has an id of its own for life. Another namespace, another server, or a server that began on an empty file
has another id, and knows nothing of our runs: that they are not there proves nothing.
"""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, GetClusterInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from casework.durable.client import CALL_TIMEOUT
from casework.errors import SettingsError, UnreachableError
from casework.store import engines
from casework.store.database import Database
from casework.store.engines import EngineRow

REMEDY = (
    "Set TEMPORAL_NAMESPACE and TEMPORAL_ADDRESS (or the profile) to the engine of this database. If the runs were "
    "moved here on purpose, or the old engine is lost for good, run `casework engine accept` with the owner's URL: "
    "open runs that this engine does not have are then closed FAILED."
)


async def engine_of(client: Client) -> EngineRow:
    """The engine behind a connection.

    Raises:
        UnreachableError: it does not answer, or has no such namespace.
    """
    namespace = client.namespace
    request = DescribeNamespaceRequest(namespace=namespace)
    try:
        found = await client.workflow_service.describe_namespace(request, timeout=CALL_TIMEOUT)
    except (RPCError, RuntimeError) as error:
        if isinstance(error, RPCError) and error.status is RPCStatusCode.NOT_FOUND:
            raise UnreachableError(
                f"Temporal has no namespace {namespace!r}. Create it, or set TEMPORAL_NAMESPACE."
            ) from error
        raise UnreachableError(
            f"Temporal does not say which namespace {namespace!r} is ({error!s:.200}). Is it running, and may this key "
            "describe the namespace?"
        ) from error
    address = client.service_client.config.target_host
    return EngineRow(found.namespace_info.id, namespace, address, await _cluster(client))


async def _cluster(client: Client) -> str:
    """For people only: a namespace that lives in several clusters answers from each, under one id."""
    try:
        found = await client.workflow_service.get_cluster_info(GetClusterInfoRequest(), timeout=CALL_TIMEOUT)
    except RPCError:
        return ""
    return found.cluster_id


def foreign(kept: EngineRow, here: EngineRow) -> str | None:
    """What is wrong where the engine here is not the one that is kept; None where it is."""
    if kept.namespace_id == here.namespace_id:
        return None
    return f"The runs of this database are in Temporal's {kept.shown()}, and this is {here.shown()}."


async def own_engine(db: Database, client: Client) -> tuple[EngineRow, str | None]:
    """The engine that is kept, which is the one here where none was, and what is wrong with the one here.

    Raises:
        StoreUnavailableError: the database cannot be reached.
        UnreachableError: the engine does not answer.
    """
    here = await engine_of(client)
    async with db.transaction() as conn:
        kept = await engines.kept(conn) or await engines.keep_first(conn, here)
    return kept, foreign(kept, here)


async def require_own(db: Database, client: Client) -> None:
    """That this is the engine of the database's runs.

    Raises:
        SettingsError: it is another one; names both.
        StoreUnavailableError: the database cannot be reached.
        UnreachableError: the engine does not answer.
    """
    _, wrong = await own_engine(db, client)
    if wrong is not None:
        raise SettingsError(f"{wrong} {REMEDY}", field="TEMPORAL_NAMESPACE")
