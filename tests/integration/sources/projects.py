"""A project that has one input monitor, and what a test asks of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dishka import Provider, Scope

from casework.process.local import LocalProject
from casework.process.monitors import InputMonitorTask
from casework.process.shipped import INTAKE
from casework.process.transactions import Transaction


def project(monitor: type[InputMonitorTask[Any]], **provided: Any) -> LocalProject:
    """The shipped Intake with this Monitor. `provided` are objects, by any name; each is given where its type is asked
    for, and a `(type, object)` where that type is."""
    module = Provider(scope=Scope.APP)
    for each in provided.values():
        asked, made = each if isinstance(each, tuple) else (type(each), each)
        module.provide(_giver(made), provides=asked)
    return LocalProject([replace(INTAKE, monitor=monitor, tray_size=100)], modules=[module])


def _giver(made: Any) -> Callable[[], Any]:
    return lambda: made


def taken(made: LocalProject) -> list[Transaction]:
    """All Transactions, in the order in which they came."""
    return list(made.store.transactions.values())


def keys(made: LocalProject) -> list[str | None]:
    return [each.natural_key for each in taken(made)]


def errors(made: LocalProject) -> list[tuple[str, str]]:
    """Code and text of each error."""
    return [(each.code, each.full) for each in made.store.errors]
