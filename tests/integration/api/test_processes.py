"""Processes and Monitors over HTTP: where they stand, started, stopped, polled and scheduled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

import psycopg
import pytest

from casework.api import build
from casework.app import App
from casework.cli.process_view import print_monitor
from casework.errors import ProcessDeclarationError
from casework.process import ErrorType, Severity, half_days
from casework.settings import Settings
from casework.store.processes import intake
from casework.store.processes.intake import InputErrorRow
from tests.integration.api.conftest import TENANT, Door
from tests.integration.api.lines import APP, BEGAN, WORK, door_to, put, put_failed


@pytest.fixture
async def works(door: Door) -> AsyncIterator[Door]:
    """The API of an application with processes, and no worker."""
    async with door_to(door, APP) as made:
        yield made


def counted(items: list[dict[str, Any]]) -> dict[str, int]:
    return {each["status"]: each["transactions"] for each in items}


async def test_processes_are_listed_with_counts_and_monitors(works: Door) -> None:
    """Each line, how many Transactions are at it in which status, and what waits at none."""
    await put(works)
    await put(works, 2)
    await put_failed(works)
    body = (await works.get("/v1/processes", role="viewer")).body
    work, errors = body["items"]
    assert [each["name"] for each in work["tasks"]] == ["price", "pack"]
    assert (work["name"], work["tray_size"], work["handles_errors"], errors["handles_errors"]) == (
        "work",
        10,
        False,
        True,
    )
    assert counted(work["counts"]) == {"HAS_ERROR": 1}
    assert counted(body["elsewhere"]) == {"INTAKE_COMPLETED": 2}
    assert work["monitor"]["state"] == "never_started"
    assert (await works.get("/v1/processes", tenant="other")).body["elsewhere"] == []


async def test_a_process_is_started_polled_and_stopped(works: Door) -> None:
    """BP-16. By an operator; a second start finds it there, and what does not run can be neither stopped nor polled."""
    for path in ("/v1/processes/work/stop", "/v1/monitors/work/stop", "/v1/monitors/work/poll"):
        answer = await works.post(path, {}, role="operator")
        assert (answer.status, "does not run" in answer.body["detail"]) == (409, True)
    assert (await works.post("/v1/processes/work/start", {}, role="viewer")).status == 403
    started = await works.post("/v1/processes/work/start", {}, role="operator", name="olga")
    assert (started.status, started.body) == (202, {"process": "work", "state": "started"})
    assert (await works.post("/v1/processes/work/start", role="operator")).body["state"] == "running"
    monitor = (await works.get("/v1/processes/work")).body["monitor"]
    assert (monitor["state"], monitor["how"], monitor["since"] is not None) == ("running", None, True)
    assert (await works.post("/v1/monitors/work/poll", {}, role="operator")).body["state"] == "polling"
    assert (await works.post("/v1/processes/work/stop", {}, role="operator")).body["state"] == "stopping"


async def test_a_monitor_tells_its_configuration_and_where_it_is_from(works: Door, database_dsn: str) -> None:
    """BP-13, BP-17. Row, then JSON, then defaults, value by value; what is ignored is told, naming the field."""
    with psycopg.connect(database_dsn) as conn:
        conn.execute(
            "insert into process_ops.monitor_configuration (monitor_class, max_loops) values ('ProcessingMonitor', 7)"
        )
    work, errors = (await works.get("/v1/monitors", role="viewer")).body["items"]
    config = work["configuration"]
    assert config["polling_interval"] == {"value": "PT2S", "source": "json"}
    assert config["max_loops"] == {"value": 7, "source": "row"}
    assert config["max_running_time"] == {"value": None, "source": "default"}
    assert work["monitor_class"] == "ProcessingMonitor"
    assert errors["configuration"]["polling_interval"] == {"value": "PT1M", "source": "default"}
    (ignored,) = errors["configuration"]["ignored"]
    assert "field 'pollingIntervall'" in ignored
    assert (await works.get("/v1/monitors/work")).body["newest_rounds"] == []


async def test_a_monitor_tells_what_it_could_not_take_in(works: Door, capsys: pytest.CaptureFixture[str]) -> None:
    """BP-20. Each entity once, with how often and when last; a poll that failed has no key. Of this process alone."""
    known: dict[str, Any] = {
        "monitor_class": "ProcessingMonitor",
        "type": ErrorType.BUSINESS,
        "code": "EMPTY",
        "severity": Severity.ERROR,
        "full_text": "BusinessError: nothing in it",
        "times": 1,
    }

    async def refuse(number: int, key: str | None, short: str, process: str = "work") -> None:
        at = BEGAN + timedelta(minutes=number)
        row = InputErrorRow(
            uuid=uuid5(UUID(int=0), f"{key}"), process=process, natural_key=key, short_text=short,
            first_at=at, last_at=at, **known,
        )  # fmt: skip
        async with works.db.transaction() as conn:
            await intake.refuse(conn, TENANT, row)

    for number in (1, 2, 3):
        await refuse(number, "mail\x1b[2J", "BusinessError: nothing in it")
    await refuse(2, None, "ConnectionError: the mailbox is away")
    await refuse(4, "other", "not here", process="errors")
    found = (await works.get("/v1/monitors/work", role="viewer")).body
    mail, poll = found["newest_refused"]
    assert (mail["times"], mail["first_at"][:16], mail["last_at"][:16]) == (3, "2026-03-01T00:01", "2026-03-01T00:03")
    assert (mail["code"], mail["type"], poll["natural_key"]) == ("EMPTY", "BUSINESS", None)
    print_monitor(found)
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert first == (
        "refused     2026-03-01 00:03:00Z  mail\ufffd[2J 3 times, first 2026-03-01 00:01:00Z: EMPTY: "
        "BusinessError: nothing in it"
    )
    assert second.endswith("a poll: EMPTY: ConnectionError: the mailbox is away")


async def test_a_monitor_class_is_configured(works: Door) -> None:
    """BP-17. By an operator, value by value; null takes one back, and what does not hold is refused with its field."""
    path = "/v1/monitors/classes/ProcessingMonitor"
    made = await works.ask("PATCH", path, {"max_loops": 7, "sleep_time": "PT5S"}, role="operator")
    assert (made.status, made.body["monitor_class"]) == (200, "ProcessingMonitor")
    assert made.body["configuration"]["sleep_time"] == {"value": "PT5S", "source": "row"}
    again = await works.ask("PATCH", path, {"sleep_time": None}, role="operator")
    config = again.body["configuration"]
    assert (config["sleep_time"]["source"], config["max_loops"]["value"]) == ("json", 7)
    assert (await works.get("/v1/monitors/work")).body["configuration"] == config
    other = await works.get("/v1/monitors/work", tenant="other")
    assert other.body["configuration"]["max_loops"]["source"] == "default"
    for body, field in (
        ({}, "polling_interval"),
        ({"max_loops": 0}, "max_loops"),
        ({"max_loops": True}, "max_loops"),
        ({"polling_interval": "10m"}, "polling_interval"),
        ({"max_running_time": "PT0S"}, "max_running_time"),
        ({"monitorClass": "X"}, "monitorClass"),
    ):
        answer = await works.ask("PATCH", path, body, role="operator")
        assert (answer.status, answer.body["errors"][0]["field"]) == (422, field)
    assert (await works.ask("PATCH", path, {"max_loops": 1}, role="viewer")).status == 403
    assert (await works.ask("PATCH", f"{path}s", {"max_loops": 1}, role="operator")).status == 404


async def test_a_schedule_is_kept_by_the_engine_and_taken_away(works: Door) -> None:
    """BP-30. By interval or by cron in a named zone, with its next starts; another one takes its place."""
    path = "/v1/processes/work/schedule"
    assert (await works.get("/v1/processes/work")).body["schedule"] is None
    every = {"every": "PT12H", "offset": "PT30M", "overlap": "buffer_one", "catch_up": "PT12H"}
    assert (await works.post(path, every, role="operator")).body == {"process": "work", "state": "scheduled"}
    starts = (await works.get("/v1/processes/work")).body["schedule"]["next_starts"]
    assert {each[11:19] for each in starts} == {"00:30:00", "12:30:00"}
    await works.post(path, {"cron": ["15 6 * * *"], "zone": "Asia/Tokyo"}, role="operator")
    starts = (await works.get("/v1/processes/work")).body["schedule"]["next_starts"]
    assert {each[11:19] for each in starts} == {"21:15:00"}
    assert (await works.ask("DELETE", path, role="operator")).body["state"] == "unscheduled"
    assert (await works.ask("DELETE", path, role="operator")).body["state"] == "unchanged"


async def test_a_declared_schedule_is_told_and_brought_back(door: Door) -> None:
    """BP-30. What the process declares, and whether it is what is in force."""
    path = "/v1/processes/work/schedule"
    async with door_to(door, App(processes=[replace(WORK, schedule=half_days())])) as works:
        made = (await works.get("/v1/processes/work")).body
        assert (made["declared_schedule"]["every"], made["schedule"]) == ("PT12H", None)
        for sent, source in (({"declared": True}, "declared"), ({"every": "PT1H"}, "by_hand")):
            assert (await works.post(path, sent, role="operator")).status == 200
            assert (await works.get("/v1/processes/work")).body["schedule"]["source"] == source
        both = await works.post(path, {"declared": True, "every": "PT1H"}, role="operator")
        assert (both.status, both.body["errors"][0]["field"]) == (422, "declared")
        await works.post(path, {"declared": True}, role="operator")
    async with door_to(door, App(processes=[WORK])) as works:
        made = (await works.get("/v1/processes/work")).body
        assert (made["declared_schedule"], made["schedule"]["source"]) == (None, "outdated")
        assert "declares no schedule" in (await works.post(path, {"declared": True}, role="operator")).body["detail"]
        await works.ask("DELETE", path, role="operator")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "cron"),
        ({"every": "often"}, "every"),
        ({"every": 5}, "every"),
        ({"every": "PT1H", "zone": "Europe/Berlin"}, "zone"),
        ({"every": "PT1H", "offset": "PT2H"}, "offset"),
        ({"cron": ["now and then"]}, "cron"),
        ({"every": "PT1H", "overlap": "sometimes"}, "overlap"),
        ({"every": "PT1H", "evry": "PT1H"}, "evry"),
    ],
)
async def test_a_schedule_that_does_not_hold_is_422(works: Door, body: dict[str, Any], field: str) -> None:
    """With the field."""
    answer = await works.post("/v1/processes/work/schedule", body, role="operator")
    assert (answer.status, answer.body["errors"][0]["field"]) == (422, field)


async def test_what_is_not_there_is_404_with_the_near_name(works: Door) -> None:
    """For each route that names a process."""
    for method, path in (
        ("GET", "/v1/processes/wrk"),
        ("GET", "/v1/monitors/wrk"),
        ("POST", "/v1/processes/wrk/start"),
        ("POST", "/v1/monitors/wrk/poll"),
        ("DELETE", "/v1/processes/wrk/schedule"),
    ):
        answer = await works.ask(method, path, {} if method == "POST" else None, role="admin")
        assert (answer.status, "Did you mean 'work'?" in answer.body["detail"]) == (404, True)


async def test_without_processes_the_lists_are_empty(door: Door) -> None:
    """An application of runs alone."""
    assert (await door.get("/v1/processes")).body == {"items": [], "elsewhere": []}
    assert (await door.get("/v1/monitors")).body == {"items": []}


def test_an_application_whose_processes_are_refused_is_not_served() -> None:
    """BP-12. Told when the API starts, and not at the first request."""
    with pytest.raises(ProcessDeclarationError, match="would run once only"):
        build(Settings(), App(processes=[replace(WORK, rules=())]))
