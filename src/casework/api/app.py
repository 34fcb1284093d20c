"""The application: every router behind the one door, and its life from the first connection to the last.

`create_app` is for whoever has a database and a run client already (tests, the local stack); `build` makes and closes
them with the application itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Security
from temporalio.client import Client

from casework.api import health, metrics, openapi, problems, reviews, runs, workflows
from casework.api.access import authorize
from casework.api.services import Services
from casework.app import App
from casework.durable.client import RunClient
from casework.durable.connection import connect_config
from casework.durable.converter import DATA_CONVERTER
from casework.errors import SettingsError
from casework.settings import Settings
from casework.store.database import Database


def create_app(settings: Settings, app: App, db: Database, run_client: RunClient) -> FastAPI:
    """The API over a database and a run client that the caller opened and will close."""
    made = _bare()
    made.state.services = Services(db, run_client, app, settings)
    return made


def build(settings: Settings, app: App) -> FastAPI:
    """The API that opens its own database and its own way to Temporal when it starts, and closes them when it ends.

    Temporal need not be there: runs are accepted and wait. The database must be.
    """

    @asynccontextmanager
    async def lifespan(made: FastAPI) -> AsyncIterator[None]:
        client = await Client.connect(**connect_config(settings.temporal), data_converter=DATA_CONVERTER, lazy=True)
        pool = {"min_size": settings.database.pool_min_size, "max_size": settings.database.pool_max_size}
        async with await Database.open(database_url(settings), name="casework-api", **pool) as db:
            run_client = RunClient(client, settings.temporal.task_queue)
            made.state.services = Services(db, run_client, app, settings)
            yield

    return _bare(lifespan=lifespan)


def database_url(settings: Settings) -> str:
    """The URL that the API works with.

    Raises:
        SettingsError: none is known.
    """
    if settings.database.url is None:
        raise SettingsError(
            "No database is named. Start one with `casework dev`, or set CASEWORK_DATABASE_URL.",
            field="CASEWORK_DATABASE_URL",
        )
    return settings.database.url.reveal()


def _bare(**options: Any) -> FastAPI:
    made = FastAPI(
        title="Casework",
        version=version("casework"),
        description="Runs of agents that work cases, their evidence, and the decisions of people.",
        dependencies=[Security(authorize)],
        docs_url=None,
        redoc_url=None,
        **options,
    )
    for router in (runs.router, reviews.router, workflows.router, metrics.router, health.router):
        made.include_router(router)
    problems.install(made)
    openapi.install(made)
    return made
