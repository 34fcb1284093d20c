"""What the routes work with: the database, the client of the runs, the application and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, Request

from casework.durable.client import RunClient
from casework.durable.process_client import ProcessClient
from casework.settings import Settings
from casework.store.database import Database

if TYPE_CHECKING:
    from casework.app import App


@dataclass(frozen=True)
class Services:
    """One of each, for as long as the application lives."""

    db: Database
    runs: RunClient
    app: App
    settings: Settings

    @property
    def processes(self) -> ProcessClient:
        """The client of the processes."""
        return ProcessClient(self.runs, self.settings.histories)


def services_of(request: Request) -> Services:
    """The services of the application that serves `request`."""
    return cast("Services", request.app.state.services)


ServicesDep = Annotated[Services, Depends(services_of)]
"""For endpoints: the services."""
