"""The application: every router behind the one door, and its life from the first connection to the last.

`create_app` is for whoever has a database and a run client already (tests, the local stack); `build` makes and closes
them with the application itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from fastapi import Depends, FastAPI, Security

from casework.api import (
    health,
    inbox,
    metrics,
    monitors,
    openapi,
    problems,
    processes,
    resources,
    reviews,
    runs,
    scraping,
    steps,
    transactions,
    workflows,
)
from casework.api.access import Watchers, authorize
from casework.api.http_figures import CountRequests
from casework.api.paging import known_only
from casework.api.services import Services
from casework.api.tracing import TraceRequests
from casework.durable.client import RunClient
from casework.settings import Settings
from casework.store.database import Database
from casework.telemetry.start import tracing

if TYPE_CHECKING:
    from casework.app import App
    from casework.telemetry.tracer import Tracer

ROUTES = (
    runs,
    steps,
    reviews,
    processes,
    transactions,
    monitors,
    inbox,
    workflows,
    resources,
    metrics,
    scraping,
    health,
)
"""Every module with a router, in the order of the document."""


def create_app(
    settings: Settings, app: App, db: Database, run_client: RunClient, tracer: Tracer | None = None
) -> FastAPI:
    """The API over a database, a run client and a tracer that the caller opened and will close."""
    made = _bare()
    made.state.services = Services(db, run_client, app, settings)
    made.state.tracer = tracer
    return made


def build(settings: Settings, app: App) -> FastAPI:
    """The API that opens its own database and its own way to Temporal when it starts, and closes them when it ends.

    Temporal need not be there: runs are accepted and wait. The database must be, and the store for large values.

    Raises:
        ProcessDeclarationError: a process of the application is refused; lists the problems of all.
    """
    app.lines()

    @asynccontextmanager
    async def lifespan(made: FastAPI) -> AsyncIterator[None]:
        run_client = await RunClient.open(settings)
        await run_client.try_store()
        with tracing(settings.telemetry, "casework-api") as made.state.tracer:
            async with await Database.open(
                settings.database.runtime_dsn(),
                min_size=settings.database.pool_min_size,
                max_size=settings.database.pool_max_size,
                name="casework-api",
            ) as db:
                made.state.services = Services(db, run_client, app, settings)
                yield

    return _bare(lifespan=lifespan)


def _bare(**options: Any) -> FastAPI:
    made = FastAPI(
        title="Casework",
        version=version("casework"),
        description="Runs of agents that work cases, their evidence, and the decisions of people.",
        dependencies=[Security(authorize), Depends(known_only)],
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        **options,
    )
    made.state.watchers, made.state.scraper = Watchers(), scraping.Scraper()
    for module in ROUTES:
        made.include_router(module.router)
    made.add_middleware(CountRequests, figures=made.state.scraper.http)
    made.add_middleware(TraceRequests)
    problems.install(made)
    openapi.install(made)
    return made
