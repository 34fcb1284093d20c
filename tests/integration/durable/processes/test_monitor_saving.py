"""Saving an entity: slow work is done before the database transaction, and what cannot be run is the entity's error."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from dishka import Provider, Scope

from casework.app import App
from casework.process import INTAKE
from casework.sources.attachments import Attachments
from casework.sources.folder import Folder, FolderOfFiles, FolderSettings
from casework.store import connection
from casework.store.database import Database
from casework.store.processes import intake
from casework.store.processes.intake import InputErrorRow
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.processes.post import SLOW, Box, Mails, Modules, furnished, polled, processes, sql

OPEN = "select count(*) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'"
"""Database transactions that wait for the next statement."""


@dataclass
class Slow:
    """A keeper that takes its time, until no database transaction waits for it."""

    house: House
    kept: list[str] = field(default_factory=list)

    async def keep(self, name: str, media_type: str, content: bytes) -> str:
        async def none_waits() -> bool:
            return await sql(self.house, OPEN) == [0]

        self.kept.append(name)
        await eventually(none_waits, "no database transaction waits", 3)
        return f"sha256:{hashlib.sha256(content).hexdigest()}"

    async def read(self, reference: str) -> bytes:
        raise NotImplementedError


async def test_contents_are_kept_before_the_database_transaction(house: House, tmp_path: Path) -> None:
    """BP-20. The server ends a transaction that is silent for seconds, so a large content or a slow store must not be
    within it. What came before is not kept again."""
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    (tmp_path / "b.eml").write_bytes(b"Message-ID: <1@x>\nSubject: hello\n\ntext\n")
    keeper, modules = Slow(house), Provider(scope=Scope.APP)
    modules.provide(lambda: Folder(FolderSettings(path=str(tmp_path), settle_s=0)), provides=Folder)
    modules.provide(lambda: keeper, provides=Attachments)
    process = replace(INTAKE, monitor=FolderOfFiles)
    told = {"monitors": [{"monitorClass": "FolderOfFiles", **SLOW}]}
    for times in (1, 2):  # the second worker reads the folder anew
        async with house.with_app(App(processes=[process], modules=[modules], monitors=told)) as there:
            if times == 1:
                await processes(there).start(TENANT, "intake", "ann")
            else:
                await processes(there).poll_now(TENANT, "intake", "ann")
            last, *_ = await polled(there, times)
        assert (last.taken_in, last.repeated, last.bad) == ((2, 0, 0) if times == 1 else (0, 2, 0))
    assert keeper.kept == ["a.pdf", "message.eml"]


STATEMENTS = {
    "table": "select * from public.nowhere",
    "column": "select nothing from public.letters",
    "function": "select public.no_such()",
    "right": "select * from public.secret",
    "schema": "select * from nowhere.letters",
}


class Odd(Mails):
    """Sends the statement that the mail names."""

    async def save_input_entity(self, entity: str) -> Mapping[str, Any]:
        if entity in STATEMENTS:
            await self.connection.execute(STATEMENTS[entity])
        return await super().save_input_entity(entity)


def odd(box: Box, monitor: type[Mails] = Odd) -> App:
    told = {"monitors": [{"monitorClass": monitor.__name__, **SLOW}]}
    return App(processes=[replace(INTAKE, monitor=monitor)], modules=[Modules(box)], monitors=told)


async def refused(house: House) -> dict[str | None, InputErrorRow]:
    async with house.db.transaction() as conn:
        return {row.natural_key: row for row in await intake.refused(conn, TENANT, "intake")}


async def test_a_statement_that_cannot_be_run_is_the_fault_of_its_entity(house: House) -> None:
    """BP-20: what is missing in the project's tables is no database that is away: the other entities are taken, and
    the error says what is missing. Told once; a repeat counts."""
    await furnished(house)
    await sql(house, "create table public.secret (n integer)")
    async with house.with_app(odd(Box([*STATEMENTS, "mail"]))) as there:
        await processes(there).start(TENANT, "intake", "ann")
        [first] = await polled(there)
        await processes(there).poll_now(TENANT, "intake", "ann")
        again, _ = await polled(there, 2)
        rows = await refused(there)
    assert (first.taken_in, first.bad) == (1, 5)
    assert (again.repeated, again.bad) == (1, 5)
    assert {key: row.times for key, row in rows.items()} == dict.fromkeys(STATEMENTS, 2)
    assert all(row.last_at > row.first_at for row in rows.values())
    words = {key: row.full_text for key, row in rows.items()}
    assert 'relation "public.nowhere" does not exist' in words["table"]
    assert "Create what is missing, or mend the statement" in words["table"]
    assert "grant" in words["right"].lower()
    assert "casework migrate" not in "".join(words.values())


class Asking(Mails):
    """Asks for its mails by the worker's own pool, in a table that is not there."""

    def __init__(self, box: Box, db: Database) -> None:
        super().__init__(box)
        self.db = db

    async def query_input_entities(self) -> list[str]:
        async with self.db.transaction() as conn:
            await conn.execute("select * from public.nowhere")
        return []


async def test_a_query_that_cannot_be_run_ends_its_poll(house: House) -> None:
    """BP-20: recorded as the poll's failure, and the Monitor goes on."""
    async with house.with_app(odd(Box(), Asking)) as there:
        await processes(there).start(TENANT, "intake", "ann")
        [first] = await polled(there)
    assert first.failure is not None
    assert "public.nowhere" in first.failure


async def test_a_save_that_is_silent_too_long_is_the_fault_of_its_entity(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BP-20: the server ends its transaction; the error names the method in which slow work belongs."""
    await furnished(house)
    monkeypatch.setattr(connection, "IDLE_IN_TRANSACTION_S", 0.2)

    class Silent(Mails):
        async def save_input_entity(self, entity: str) -> Mapping[str, Any]:
            if entity == "slow":
                found = await self.connection.execute("select pg_backend_pid()")
                (pid,) = await found.fetchone()
                async with await psycopg.AsyncConnection.connect(house.dsn, autocommit=True) as other:
                    while await (
                        await other.execute("select 1 from pg_stat_activity where pid = %s", [pid])
                    ).fetchone():
                        pass
            return await super().save_input_entity(entity)

    async with (
        await Database.open(house.dsn) as quick,
        replace(house, db=quick).with_app(odd(Box(["slow", "mail"]), Silent)) as there,
    ):
        await processes(there).start(TENANT, "intake", "ann")
        [first] = await polled(house)
        rows = await refused(house)
    assert (first.taken_in, first.bad) == (1, 1)
    assert "prepare_input_entity" in rows["slow"].full_text


class Keyed(Mails):
    """Its keys are what the mails are; each is prepared first."""

    async def prepare_input_entity(self, entity: Any) -> Any:
        return entity

    async def save_input_entity(self, entity: Any) -> Mapping[str, Any]:
        return {"mail": str(entity)}

    def natural_key(self, entity: Any) -> Any:
        return entity


async def test_a_key_that_is_none_is_its_entitys_error(house: House) -> None:
    """BP-20. A key that is no text stops nobody; one that the database cannot hold is held as every text is."""
    mails: Any = [5, b"6", "a\x00b", "\ud800", "good"]
    app = App(
        processes=[replace(INTAKE, monitor=Keyed)],
        modules=[Modules(Box(mails))],
        monitors={"monitors": [{"monitorClass": "Keyed", **SLOW}]},
    )
    async with house.with_app(app) as there:
        await processes(there).start(TENANT, "intake", "ann")
        await polled(there)
        await processes(there).poll_now(TENANT, "intake", "ann")
        again, first = await polled(there, 2)
        async with there.db.transaction() as conn:
            bad = await intake.refused(conn, TENANT, "intake")
    assert (first.taken_in, first.bad, first.failure) == (3, 2, None)
    assert (again.taken_in, again.repeated, again.bad) == (0, 3, 2)
    assert {each.short_text for each in bad} == {
        f"InputError: natural_key is {key}: pass a text, or None." for key in ("5", "b'6'")
    }
