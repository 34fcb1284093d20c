"""A worker's own metrics, scraped over HTTP as Prometheus does."""

from __future__ import annotations

import re

import httpx2
import pytest

from casework.durable.connection import connect
from casework.durable.metering import metrics_runtime
from casework.durable.worker import make_worker, watchers
from casework.errors import CaseworkError, SettingsError, UnreachableError
from tests.integration.durable.conftest import APPLICATION, House


async def scraped(address: str) -> dict[str, float]:
    """Every sample by its name with labels."""
    async with httpx2.AsyncClient() as http:
        text = (await http.get(address)).text
    return {name: float(value) for name, value in re.findall(r"^([^#\s]\S*(?:\{.*\})?) (\S+)$", text, re.MULTILINE)}


async def test_one_scrape_gives_the_engines_figures_and_ours(house: House) -> None:
    """Attempts by operation and outcome, their seconds, and beside them slots and cache of the engine's SDK."""
    runtime, address = metrics_runtime("localhost:0")
    client = await connect(house.settings, runtime=runtime)
    async with make_worker(client, house.services(), house.settings, watching=watchers(None, runtime)):
        run_id = await house.start(APPLICATION)
        await house.reaches(run_id, "AWAITING_REVIEW")
        found = await scraped(address)
    assert found['casework_attempts_total{operation="tool",outcome="completed"}'] == 4
    assert found['casework_attempts_total{operation="model",outcome="completed"}'] == 4
    assert found['casework_attempt_time_seconds_count{operation="tool"}'] == 4
    assert found['casework_attempt_time_seconds_bucket{operation="tool",le="60"}'] == 4
    names = {name.partition("{")[0] for name in found}
    assert {"temporal_worker_task_slots_available", "temporal_sticky_cache_size"} <= names
    assert not any(str(run_id) in name for name in found)


def test_a_busy_address_is_told(house: House) -> None:
    """Two workers at one address: the second one says which, and what to do."""
    runtime, address = metrics_runtime("127.0.0.1:0")
    busy = address.removeprefix("http://").removesuffix("/metrics")
    with pytest.raises(UnreachableError, match=f"CASEWORK_WORKER_METRICS_ADDRESS={busy}.*0 for any free one"):
        metrics_runtime(busy)
    assert runtime is not None


@pytest.mark.parametrize("address", ["9464", "nohost", ":9464", "127.0.0.1:http", "127.0.0.1:70000", "no such:1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    """The variable, its value and how to write it."""
    with pytest.raises(SettingsError, match=r"CASEWORK_WORKER_METRICS_ADDRESS is .* like 127.0.0.1:9464"):
        metrics_runtime(address)


def test_a_foreign_address_is_told() -> None:
    """An address of another machine cannot be listened on."""
    for address in ("203.0.113.1:9464", "203.0.113.1:0"):
        with pytest.raises(CaseworkError, match="cannot be listened on"):
            metrics_runtime(address)
