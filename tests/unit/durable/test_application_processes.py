"""An application's processes in the hands of a worker: admitted, provided for, configured, released."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from dishka import Provider, Scope, provide
from tests.unit.process.lines import FINALIZER, plain

from casework.app import App
from casework.durable.activities.services import Services
from casework.durable.worker import ready
from casework.errors import ProcessDeclarationError, SettingsError
from casework.process import (
    PROCESSING,
    SUBMISSION,
    BusinessProcess,
    Change,
    PlainTask,
    TaskContext,
    Transaction,
    bot_task,
)
from casework.settings import ProcessSettings, Settings

CLOSED: list[str] = []


class Rates:
    """What a Task asks for."""


class Modules(Provider):
    """Provides it, and notes when it is released."""

    @provide(scope=Scope.APP)
    async def rates(self) -> AsyncIterator[Rates]:
        yield Rates()
        CLOSED.append("rates")


@bot_task("convert", effects=False)
class Convert(PlainTask):
    def __init__(self, rates: Rates) -> None:
        self.rates = rates

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return None


CONVERTING = replace(PROCESSING, tasks=(Convert,))


def services(settings: Settings | None = None, **given: Any) -> Services:
    nothing = cast("Any", None)
    return Services(nothing, App(**given), nothing, settings or Settings())


def configured(file: Path) -> Settings:
    return Settings(processes=ProcessSettings(monitors=file))


def test_an_application_without_processes_has_no_lines() -> None:
    assert App().lines() == {}


def test_lines_are_admitted_once_and_stay_with_other_manifests() -> None:
    app = App(processes=[PROCESSING, SUBMISSION])
    assert list(app.lines()) == ["processing", "submission"]
    assert app.lines() is app.lines()
    assert app.with_manifests([]).lines() == app.lines()


def test_problems_of_all_processes_are_told_at_once() -> None:
    one, two = replace(PROCESSING, rules=()), BusinessProcess(name="Bad Name", monitor=PROCESSING.monitor)
    with pytest.raises(ProcessDeclarationError) as refused:
        App(processes=[one, two]).lines()
    assert "loop record" in str(refused.value)
    assert "'Bad Name'" in str(refused.value)


async def test_a_missing_provider_names_the_task_when_the_worker_starts() -> None:
    """BP-7: a missing provider is an error at start, naming the Task."""
    with pytest.raises(ProcessDeclarationError, match=r"Task 'convert': no module provides Rates.*Add a provider"):
        async with ready(services(processes=[CONVERTING])):
            raise AssertionError("it started")


async def test_what_modules_opened_is_released_when_the_worker_stops() -> None:
    CLOSED.clear()
    async with ready(services(processes=[CONVERTING], modules=[Modules()])) as made:
        async with made.injector.made(Convert) as task:
            assert isinstance(task.rates, Rates)
        assert CLOSED == []
    assert CLOSED == ["rates"]


async def test_two_processes_may_use_one_name_for_two_tasks() -> None:
    one, two = plain("check"), plain("check")
    processes = [
        BusinessProcess(name=name, monitor=PROCESSING.monitor, tasks=(cls,), finalizer=FINALIZER)
        for name, cls in (("a", one), ("b", two))
    ]
    async with ready(services(processes=processes)) as made:
        for cls in (one, two):
            async with made.injector.made(cls) as task:
                assert type(task) is cls


async def test_what_is_ignored_in_the_configuration_is_told_once_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """BP-13: an object with an unexpected field is ignored as a whole, and the log names the field."""
    file = tmp_path / "monitors.json"
    monitors = [
        {"monitorClass": "ProcessingMonitor", "pollingIntervall": "PT5S"},
        {"monitorClass": "SubmissionMonitr", "pollingInterval": "PT5S"},
    ]
    file.write_text(json.dumps({"monitors": monitors}))
    with caplog.at_level(logging.WARNING, "casework.worker"):
        async with ready(services(configured(file), processes=[PROCESSING, SUBMISSION])) as made:
            assert made.monitors.by_class.keys() == {"SubmissionMonitr"}
    ignored, unknown = [record.getMessage() for record in caplog.records]
    assert "monitors[0] (ProcessingMonitor), field 'pollingIntervall'" in ignored
    assert "there is no Monitor 'SubmissionMonitr'" in unknown
    assert "SubmissionMonitor" in unknown


def test_the_setting_goes_before_what_the_application_brings(tmp_path: Path) -> None:
    file = tmp_path / "monitors.json"
    file.write_text('{"monitors": [{"monitorClass": "A", "maxLoops": 1}]}')
    own = {"monitors": [{"monitorClass": "B", "maxLoops": 2}]}
    assert services(monitors=own).monitors.by_class["B"].max_loops == 2
    assert services(monitors=file).monitors.by_class["A"].max_loops == 1
    assert list(services(configured(file), monitors=own).monitors.by_class) == ["A"]


@pytest.mark.parametrize("content", [None, "{", "\xff"])
async def test_a_file_that_cannot_be_read_is_an_error_at_the_start(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "monitors.json"
    if content is not None:
        file.write_bytes(content.encode("latin-1"))
    with pytest.raises(SettingsError, match=r"CASEWORK_MONITORS is .*monitors\.json.*Write"):
        async with ready(services(configured(file))):
            raise AssertionError("it started")
