"""Two Monitors that stop in the middle, where they are told to, for workers that are killed there."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from casework.app import App
from casework.process import INTAKE, PROCESSING, Emitter, TransactionMonitorTask
from casework.process.monitor_runners import TransactionMonitorRunner
from tests.integration.durable.processes.post import SLOW, Box, Mails, Modules

STOPS = "CASEWORK_TEST_STOPS"
"""The variable with the file that says: stop here. It is made when it has come to it."""
MAILS = [f"mail-{number}" for number in range(5)]


def stop_here() -> None:
    """Hold the whole process, where it is told to: nothing else of it happens any more."""
    if STOPS in os.environ:
        Path(os.environ[STOPS]).touch()
        time.sleep(600)


class HeldRunner(TransactionMonitorRunner):
    """Stops between the claim and the start of its trays."""

    async def poll(self, monitor: TransactionMonitorTask, emitter: Emitter) -> None:
        assert await emitter.claim(monitor.status_to_monitor, monitor.status_to_set)
        stop_here()


class HeldClaims(TransactionMonitorTask):
    runner_class = HeldRunner
    status_to_monitor, status_to_set = "INTAKE_COMPLETED", "PROCESSING_IN_PROGRESS"


class HeldMails(Mails):
    """Stops while the third mail is saved."""

    async def save_input_entity(self, entity: str) -> Mapping[str, Any]:
        saved = await super().save_input_entity(entity)
        if entity == MAILS[2]:
            stop_here()
        return saved


app = App(
    processes=[replace(INTAKE, monitor=HeldMails, tray_size=5), replace(PROCESSING, monitor=HeldClaims, tray_size=2)],
    modules=[Modules(Box(MAILS))],
    monitors={"monitors": [{"monitorClass": "HeldMails", **SLOW}, {"monitorClass": "HeldClaims", **SLOW}]},
)
