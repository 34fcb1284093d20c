"""Kinds of Tasks that work in the database of their Transaction, with repositories that modules provide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from dishka import Provider, Scope

from casework.process import Change, InputEntityTask, TaskContext, Transaction, TransactionalTask, bot_task
from casework.process.injection import TaskConnection
from tests.integration.durable.conftest import House
from tests.integration.durable.processes.trays import project, yard
from tests.unit.process.lines import process


class Letters:
    """A repository in the database transaction of the Transaction at hand."""

    def __init__(self, connection: TaskConnection) -> None:
        self._connection = connection

    async def of(self, uuid: UUID) -> list[Any]:
        cursor = await self._connection.open.execute("select n, words from letters where uuid = %s order by n", [uuid])
        return list(await cursor.fetchall())

    async def save(self, uuid: UUID, number: int, words: str) -> None:
        await self._connection.open.execute(
            "update letters set words = %s where uuid = %s and n = %s", [words, uuid, number]
        )


MODULE = Provider(scope=Scope.REQUEST)
MODULE.provide(Letters)


@bot_task("read")
class Read(InputEntityTask[Any]):
    """Puts each letter into capitals; refuses "bad"."""

    def __init__(self, letters: Letters) -> None:
        self.letters = letters

    async def find(self, transaction: Transaction, ctx: TaskContext) -> Sequence[Any]:
        return await self.letters.of(transaction.uuid)

    async def process(self, entity: Any, transaction: Transaction, ctx: TaskContext) -> Any:
        number, words = entity
        if words == "bad":
            raise ValueError("this letter cannot be read")
        return number, words.upper()

    async def save(self, entity: Any, transaction: Transaction, ctx: TaskContext) -> None:
        await self.letters.save(transaction.uuid, *entity)


@bot_task("hooks")
class Hooks(TransactionalTask):
    """Runs for what is due, and does something else for the others."""

    async def should_run(self, transaction: Transaction, ctx: TaskContext) -> bool:
        return transaction.data["due"] is True

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return Change(data={"did": ["run"]})

    async def after(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return Change(data={"did": [*transaction.data["did"], "after"]})

    async def instead(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return Change(data={"did": ["instead"]})


async def test_input_entities_and_hooks_work_in_one_database_transaction(house: House) -> None:
    """BP-7, BP-8. Entities are found, processed and saved by a repository of a module, all of a Transaction or none;
    the hooks of a transactional task are called as they should be."""
    async with yard(house, project(process(Hooks, Read, tray_size=3), modules=[MODULE])) as here:
        await here.rows("create table letters (uuid uuid, n integer, words text)")
        await here.rows("grant all on letters to casework_runtime")
        good, bad, late = [await here.add({"due": due}) for due in (True, True, False)]
        for uuid, words in ((good, ("one", "two")), (bad, ("one", "bad")), (late, ("three",))):
            for number, text in enumerate(words):
                await here.rows("insert into letters values (%s, %s, %s)", uuid, number, text)
        await here.walk()
        done = "PROCESSING_COMPLETED"
        assert await here.statuses([good, bad, late]) == [done, "HAS_ERROR", done]
        found = dict(await here.rows("select uuid, array_agg(words order by n) from letters group by uuid"))
        assert found == {good: ["ONE", "TWO"], bad: ["one", "bad"], late: ["THREE"]}
        assert (await here.get(good)).data["did"] == ["run", "after"]
        assert (await here.get(late)).data["did"] == ["instead"]
