"""The page for users of LangGraph: both programs do the same, and no notion is forgotten."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import langgraph.graph
import langgraph.types
import pytest
from langgraph.graph.state import CompiledStateGraph, StateGraph
from temporalio.client import Client

from casework.graph.commands import Decided
from casework.local.house import House
from casework.local.run import run_local
from casework.settings import Settings, TemporalSettings
from casework.store.database import Database
from tests.docs.pages import ROOT, write_files
from tests.integration.durable.conftest import House as DurableHouse
from tests.integration.durable.test_waits import values
from tests.unit.local.conftest import Answers, said

PAGE = ROOT / "docs/how_to/coming_from_langgraph.md"
MODULES = ("shop", "refunds_before", "refunds")
KEYS = ("prices", "total", "receipt")
CASES = [("ann", "approve"), ("ann", "reject"), ("bob", "approve")]
ASYNC_TWIN = re.compile(r"a(?=invoke|stream|get|update|bulk|clear)")
SHAPES = re.compile(r"\w*(StreamPart|Payload)|CheckpointTask|TaskResultPayload")
"""Types of what a stream gives, which nobody makes."""


@dataclass
class Programs:
    """The modules that the page shows."""

    shop: Any
    before: Any
    after: Any

    def done(self) -> list[str]:
        """What the shop was asked to do since the last look."""
        found, self.shop.DONE[:] = list(self.shop.DONE), []
        return found


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Programs]:
    write_files(PAGE, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Programs(*map(importlib.import_module, MODULES))
    for name in MODULES:
        del sys.modules[name]


async def after_in_memory(app: Any, customer: str, answer: str) -> dict[str, Any]:
    decided: dict[str, list[Decided]] = {"approve": [said(answer)]}
    house = House(Answers(decided), lambda *_: app.scripts["clerk"], app.toolbox)
    end = await run_local(house, app.workflow("refunds"), {"customer": customer})
    assert end.status == "COMPLETED"
    assert end.state is not None
    return dict(end.state.context)


@pytest.mark.parametrize(("customer", "answer"), CASES)
async def test_both_programs_do_the_same(programs: Programs, customer: str, answer: str) -> None:
    """AW-4, AW-9. Prices, total and receipt are equal; the peer runs what stands before its question again."""
    theirs = programs.before.refund(customer, answer)
    they_did = programs.done()
    ours = await after_in_memory(programs.after.app, customer, answer)
    we_did = programs.done()
    for key in KEYS:
        assert ours.get(key) == theirs.get(key)
    assert len(set(we_did)) == len(we_did)
    assert list(dict.fromkeys(they_did)) == we_did
    assert len(they_did) - len(we_did) == (customer == "ann")


async def test_the_port_survives_where_it_waits(
    programs: Programs, database_dsn: str, temporal_client: Client, temporal_address: str
) -> None:
    """AW-14. The worker that asked is gone when the answer comes; another goes on, and nothing is done twice."""
    theirs = programs.before.refund("ann", "approve")
    programs.done()
    temporal = TemporalSettings(address=temporal_address, task_queue=f"test-{uuid4().hex}")
    async with await Database.open(database_dsn) as db:
        house = DurableHouse(database_dsn, db, temporal_client, Settings(temporal=temporal), programs.after.app)
        await house.open()
        async with house.worker():
            run_id = await house.start({"customer": "ann"}, "refunds")
            await house.reaches(run_id, "AWAITING_REVIEW")
        async with house.worker():
            await house.decide(run_id, "approve")
            await house.reaches(run_id, "COMPLETED")
        ours = await values(house, run_id)
    assert {key: ours[key] for key in KEYS} == {key: theirs[key] for key in KEYS}
    assert programs.done() == ["looked up ann", "told the manager of 80", "paid ann 80"]


def notions() -> set[str]:
    """Every public name of a graph, its compiled form, and the types beside them."""
    types = {name for name in langgraph.types.__all__ if not SHAPES.fullmatch(name)}
    methods = {
        name
        for base in (*StateGraph.__mro__, *CompiledStateGraph.__mro__)
        if base.__module__.startswith("langgraph")
        for name, value in vars(base).items()
        if callable(value) and not name.startswith("_") and not ASYNC_TWIN.match(name)
    }
    return {*langgraph.graph.__all__, *types, *methods}


def test_every_notion_is_mapped() -> None:
    """Each public name stands on the page, but the asynchronous twins."""
    page = PAGE.read_text(encoding="utf-8").partition("## The graph")[2]
    assert not {name for name in notions() if not re.search(rf"\b{name}\b", page)}
