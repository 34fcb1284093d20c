"""Which engine the runs of this database are in: kept once, so that another one's silence proves nothing about them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from casework.store import queries
from casework.store.database import Connection

_SQL = queries.load("engines")


@dataclass(frozen=True, slots=True)
class EngineRow:
    """An engine. Its namespace's id tells it apart; name, address and cluster are for people, and may change.

    `accepted_at`: when the owner last said that this is the one, whatever is gone in it; None where nobody had to.
    """

    namespace_id: str
    namespace: str
    address: str
    cluster_id: str
    accepted_at: datetime | None = None

    def shown(self) -> str:
        """For people."""
        return f"namespace {self.namespace!r} at {self.address} (namespace id {self.namespace_id})"


async def kept(conn: Connection) -> EngineRow | None:
    """The engine of this database; None where no worker has ever worked for it."""
    return await queries.one(conn, _SQL["kept"], {}, EngineRow)


async def keep_first(conn: Connection, engine: EngineRow) -> EngineRow:
    """Keep `engine` where none is kept; the one that is kept now. Many workers may ask at once."""
    await queries.run(conn, _SQL["keep_first"], _params(engine))
    found = await kept(conn)
    assert found is not None
    return found


async def accept(conn: Connection, engine: EngineRow) -> None:
    """Keep `engine` from now on, in the owner's role: what is not in it is gone."""
    await queries.run(conn, _SQL["accept"], _params(engine))


def _params(engine: EngineRow) -> queries.Writing:
    return queries.Writing(
        namespace_id=engine.namespace_id,
        namespace=engine.namespace,
        address=engine.address,
        cluster_id=engine.cluster_id,
    )
