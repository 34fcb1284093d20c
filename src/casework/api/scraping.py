"""GET /metrics for Prometheus: what the store counts, of every tenant, and what this process answered.

A scrape is cheap and bounded: the store is read at most once in a few seconds however many ask, under a short
time-out; where it cannot be read, the answer says so and holds the rest. A process that is alive always answers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.responses import Response

from casework.api.access import Role, needs
from casework.api.http_figures import HttpFigures
from casework.api.services import ServicesDep
from casework.api.store_figures import families
from casework.errors import CaseworkError
from casework.store import totals
from casework.store.database import Database

log = logging.getLogger(__name__)

router = APIRouter(tags=["metrics"])

FRESH_S = 5.0
"""For how long a reading is given out again, in seconds: less than any usual scrape interval."""
PATIENCE_S = 3.0
"""How long a reading may take, in seconds. With the check of the token under the 10 s that a scrape has."""


@dataclass(frozen=True)
class Reading:
    """The store's figures, or None where it could not be read; `seconds` is what reading took."""

    at: float
    totals: totals.Totals | None
    seconds: float


@dataclass
class Scraper:
    """One for each application: the counters of its door, and the last reading of the store."""

    http: HttpFigures = field(default_factory=HttpFigures)
    fresh_s: float = FRESH_S
    _last: Reading | None = None
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, db: Database) -> Reading:
        """The last reading while it is fresh, else a new one; of several who ask at once one reads for all."""
        async with self._reading:
            if self._last is None or time.monotonic() - self._last.at >= self.fresh_s:
                self._last = await _read(db)
            return self._last


async def _read(db: Database) -> Reading:
    began = time.monotonic()
    found: totals.Totals | None = None
    try:
        async with asyncio.timeout(PATIENCE_S), db.transaction() as conn:
            found = await totals.read(conn, PATIENCE_S)
    except (CaseworkError, TimeoutError) as error:
        log.warning("the store's figures cannot be read: %s", str(error) or f"no answer within {PATIENCE_S:g} s")
    now = time.monotonic()
    return Reading(now, found, now - began)


class _Families(Collector):
    """Metric families, in the form that the writer of the text wants."""

    def __init__(self, parts: Iterable[Metric]) -> None:
        self._parts = tuple(parts)

    def collect(self) -> Iterator[Metric]:
        return iter(self._parts)


@router.get("/metrics", response_class=PlainTextResponse)
@needs(Role.METRICS)
async def prometheus_metrics(request: Request, services: ServicesDep) -> Response:
    """Figures of the whole installation in Prometheus' text format: the store's, and those of this process."""
    scraper: Scraper = request.app.state.scraper
    reading = await scraper.read(services.db)
    parts = chain(_about(reading), families(reading.totals) if reading.totals else (), scraper.http.registry.collect())
    return Response(generate_latest(_Families(parts)), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


def _about(reading: Reading) -> Iterator[Metric]:
    build = GaugeMetricFamily("casework_build_info", "The release that answers; always 1.", labels=("version",))
    build.add_metric((version("casework"),), 1)
    yield build
    yield GaugeMetricFamily(
        "casework_store_up", "Whether the store's figures could be read.", reading.totals is not None
    )
    yield GaugeMetricFamily("casework_store_read_seconds", "How long the last reading took.", reading.seconds)
