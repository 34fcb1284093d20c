"""Runners of Monitors: the shipped ones and a project's own, and how much one poll may emit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from uuid import UUID

import pytest
from dishka import Provider, Scope
from tests.unit.process.lines import FINALIZER, plain

from casework.errors import ProcessDeclarationError, StoreUnavailableError
from casework.process import INTAKE, PROCESSING, BusinessProcess, Emitter, InputMonitorTask, MonitorTask
from casework.process.admission import admit
from casework.process.local import LocalProject
from casework.process.monitor_runners import InputMonitorRunner, MonitorRunner, Save


class Weights:
    """What a runner asks for."""

    heavy: ClassVar[list[str]] = ["PROCESSING_COMPLETED", "INTAKE_COMPLETED"]


class HeavyFirst(MonitorRunner["Scales"]):
    """Claims from several statuses, one after the other."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    async def poll(self, monitor: Scales, emitter: Emitter) -> None:
        for status in self.weights.heavy:
            while emitter.room and await emitter.claim(status, monitor.status_to_set):
                pass


class Scales(MonitorTask):
    """A kind of Monitor of its own."""

    runner_class = HeavyFirst
    status_to_set = "PROCESSING_IN_PROGRESS"


class Bare(MonitorTask):
    status_to_set = "PROCESSING_IN_PROGRESS"


class Mails(InputMonitorTask[str]):
    """Five mails, again at each poll."""

    async def query_input_entities(self) -> Sequence[str]:
        return [f"mail-{number}" for number in range(5)]

    async def save_input_entity(self, entity: str) -> Mapping[str, Any]:
        return {"mail": entity, "uuid": str(self.transaction_uuid)}

    def natural_key(self, entity: str) -> str | None:
        return entity


def modules() -> Provider:
    made = Provider(scope=Scope.APP)
    made.provide(Weights)
    return made


async def test_a_project_brings_a_pair_of_monitor_and_runner() -> None:
    """BP-21: a Monitor of its own kind, with a runner that is made with what its constructor asks for."""
    process = BusinessProcess(name="weigh", monitor=Scales, tasks=(plain("a"),), finalizer=FINALIZER)
    async with LocalProject([process], modules=[modules()]) as project:
        for number in range(3):
            project.add("INTAKE_COMPLETED", {"n": number})
        end = await project.run("weigh")
    assert end.claimed == 3
    assert {each.status for each in project.store.transactions.values()} == {"PROCESSING_COMPLETED"}


def test_a_monitor_without_runner_is_refused() -> None:
    """BP-21: the remedy is told."""
    with pytest.raises(ProcessDeclarationError, match=r"Monitor Bare has no runner\. .*runner_class"):
        admit(BusinessProcess(name="weigh", monitor=Bare, finalizer=FINALIZER))


def test_a_provider_that_the_runner_lacks_is_told_with_its_name() -> None:
    process = BusinessProcess(name="weigh", monitor=Scales, finalizer=FINALIZER)
    with pytest.raises(ProcessDeclarationError, match="Runner 'HeavyFirst': no module provides Weights"):
        LocalProject([process])


@pytest.mark.parametrize("most", [0, True, 1.5, 100_001])
def test_a_number_of_trays_that_is_none_is_refused(most: Any) -> None:
    with pytest.raises(ProcessDeclarationError, match="max_trays is"):
        admit(replace(PROCESSING, max_trays=most))


@pytest.mark.parametrize("most", [0, True, 1.5])
def test_a_limit_per_business_key_that_is_none_is_refused(most: Any) -> None:
    with pytest.raises(ProcessDeclarationError, match="max_per_key is"):
        admit(replace(PROCESSING, max_per_key=most))


@pytest.mark.parametrize(("size", "trays"), [(1, 1000), (10, 100), (50, 50), (100, 50)])
def test_there_is_room_for_a_thousand_transactions_unless_it_is_said(size: int, trays: int) -> None:
    """BP-32: what is claimed ahead of its work is bounded without being told so."""
    assert replace(PROCESSING, tray_size=size).room == trays
    assert replace(PROCESSING, tray_size=size, max_trays=3).room == 3


async def test_a_poll_claims_no_more_than_there_is_room_for() -> None:
    """BP-32: backpressure: two trays of two are four, and the rest waits for the next poll."""
    async with LocalProject([replace(PROCESSING, tray_size=2, max_trays=2)]) as project:
        for _ in range(7):
            project.add("INTAKE_COMPLETED")
        assert [(await project.run("processing")).claimed for _ in range(3)] == [4, 3, 0]


async def test_an_input_monitor_takes_in_no_more_than_there_is_room_for() -> None:
    """BP-32: what is left over is given again by the source."""
    intake = replace(INTAKE, monitor=Mails, tray_size=2, max_trays=1)
    async with LocalProject([intake]) as project:
        assert [(await project.run("intake")).claimed for _ in range(4)] == [2, 2, 1, 0]
    made = project.store.transactions
    assert [each.data["mail"] for each in made.values()] == [f"mail-{number}" for number in range(5)]
    assert all(each.data["uuid"] == str(uuid) for uuid, each in made.items())


async def test_a_poll_that_fails_as_a_whole_is_recorded_and_the_next_one_goes_on() -> None:
    class Away(Mails):
        failures: ClassVar[int] = 1

        async def query_input_entities(self) -> Sequence[str]:
            if type(self).failures:
                type(self).failures -= 1
                raise ConnectionError("the mailbox is away")
            return await super().query_input_entities()

    async with LocalProject([replace(INTAKE, monitor=Away)]) as project:
        assert (await project.run("intake")).claimed == 0
        assert [error.short for error in project.store.errors] == ["ConnectionError: the mailbox is away"]
        assert (await project.run("intake")).claimed == 5


class Unreachable(Emitter):
    """The database is away."""

    room = 1

    async def claim(self, status: str, into: str) -> int:
        raise StoreUnavailableError("away")

    async def take_in(self, into: str, key: str | None, save: Save, **more: Any) -> bool:
        await save(UUID(int=1), "a connection")
        raise StoreUnavailableError("away")

    async def refuse(self, key: str | None, error: Exception) -> None:
        raise AssertionError("no entity is at fault")


async def test_a_database_that_is_away_is_no_fault_of_an_entity() -> None:
    seen: list[Any] = []

    class Watching(Mails):
        async def save_input_entity(self, entity: str) -> Mapping[str, Any]:
            seen.append((self.transaction_uuid, self.connection))
            return {}

        async def acknowledge_input_entity(self, entity: str) -> None:
            raise AssertionError("it is not kept")

    monitor = Watching()
    with pytest.raises(StoreUnavailableError):
        await InputMonitorRunner().poll(monitor, Unreachable())
    assert seen == [(UUID(int=1), "a connection")]
    assert (monitor.transaction_uuid, monitor.connection) == (None, None)
