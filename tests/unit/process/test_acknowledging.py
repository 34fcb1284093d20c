"""What a source hears of its entities: those that are kept are acknowledged, those that failed are rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from casework.errors import BusinessError
from casework.process.local import LocalProject
from casework.process.monitors import InputMonitorTask
from casework.process.shipped import INTAKE


class Post(InputMonitorTask[str]):
    """Entities by name; `bad` cannot be saved, `deaf` cannot be acknowledged or rejected."""

    box: ClassVar[list[str]] = []
    heard: ClassVar[list[tuple[str, str]]] = []

    async def query_input_entities(self) -> Sequence[str]:
        return self.box

    async def save_input_entity(self, entity: str) -> Mapping[str, Any]:
        self.heard.append(("save", entity))
        if "bad" in entity:
            raise BusinessError("nothing in it", code="EMPTY")
        return {"name": entity}

    async def acknowledge_input_entity(self, entity: str) -> None:
        self.heard.append(("acknowledge", entity))
        if "deaf" in entity:
            raise ConnectionError("the source is away")

    async def reject_input_entity(self, entity: str, error: Exception) -> None:
        self.heard.append((f"reject {error}", entity))
        if "deaf" in entity:
            raise ConnectionError("the source is away")

    def natural_key(self, entity: str) -> str | None:
        return entity


def monitor(*names: str) -> type[Post]:
    """A Monitor of its own for one test."""

    class Box(Post):
        box: ClassVar[list[str]] = list(names)
        heard: ClassVar[list[tuple[str, str]]] = []

    return Box


async def test_what_is_kept_is_acknowledged_and_what_failed_is_rejected() -> None:
    """Each entity is told to its source once it is dealt with, after it was saved; never both."""
    box = monitor("one", "bad")
    async with LocalProject([replace(INTAKE, monitor=box)]) as project:
        await project.run("intake")
    assert box.heard == [
        ("save", "one"),
        ("acknowledge", "one"),
        ("save", "bad"),
        ("reject nothing in it", "bad"),
    ]


async def test_what_came_before_is_acknowledged_again_and_not_saved_again() -> None:
    """After a crash between the Transaction and its acknowledgement the source would give it for ever."""
    box = monitor("one")
    async with LocalProject([replace(INTAKE, monitor=box)]) as project:
        project.store.keys.add("one")
        await project.run("intake")
        assert not project.store.transactions
    assert box.heard == [("acknowledge", "one")]


async def test_a_source_that_does_not_listen_stops_nothing() -> None:
    """The Transaction stays, the rest goes on, and what the source said is recorded."""
    box = monitor("deaf", "deaf and bad", "two")
    async with LocalProject([replace(INTAKE, monitor=box)]) as project:
        await project.run("intake")
        assert [each.natural_key for each in project.store.transactions.values()] == ["deaf", "two"]
        assert [each.code for each in project.store.errors] == ["ConnectionError", "EMPTY", "ConnectionError"]


async def test_a_monitor_need_not_listen() -> None:
    """The hooks do nothing until they are written."""

    class Plain(InputMonitorTask[str]):
        async def query_input_entities(self) -> Sequence[str]:
            return ["one", "bad"]

        async def save_input_entity(self, entity: str) -> Mapping[str, Any]:
            return {"name": {"one": 1}[entity]}

    async with LocalProject([replace(INTAKE, monitor=Plain)]) as project:
        await project.run("intake")
        assert [each.data for each in project.store.transactions.values()] == [{"name": 1}]
        assert [each.code for each in project.store.errors] == ["KeyError"]
