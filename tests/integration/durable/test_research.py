"""The research example as durable runs: searched, read, reviewed in sub-runs, revised, published once, by force."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from casework import ids
from casework.examples.research import app as shipped
from casework.examples.research.settings import OUTPUT, ROOT
from casework.store.rows import RunRow
from tests.integration.durable.conftest import House
from tests.integration.durable.research_app import HANGS_AT, READ, app
from tests.integration.durable.test_waits import told, values
from tests.integration.durable.worker_processes import killed_when

APP = "tests.integration.durable.research_app:app"
QUESTION = {"question": "Why was the bridge closed, and what does the repair cost?"}
SOURCES = ["review.1/source.1", "review.1/source.2", "review.1/source.3"]


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where reports go; readings are written down beside it."""
    monkeypatch.delenv(ROOT, raising=False)
    monkeypatch.delenv(HANGS_AT, raising=False)
    monkeypatch.setenv(OUTPUT, str(tmp_path / "reports"))
    monkeypatch.setenv(READ, str(tmp_path / "read.txt"))
    return tmp_path / "reports"


def readings(out: Path) -> Counter[str]:
    """How often each step has read."""
    file = out.with_name("read.txt")
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return Counter(line.partition(" ")[0] for line in lines)


def reports(out: Path) -> list[str]:
    return [file.read_text(encoding="utf-8") for file in out.glob("*")]


def names(out: Path) -> list[str]:
    return [file.name for file in out.glob("*")]


async def published(house: House, run_id: UUID) -> RunRow:
    """Revise once, then publish."""
    await house.review_at(run_id, "publish")
    await house.decide(run_id, "revise", "What of the council?")
    await house.reaches(run_id, "AWAITING_REVIEW", turn=3)
    await house.decide(run_id, "publish")
    return await house.reaches(run_id, "COMPLETED")


async def test_a_killed_worker_reads_no_recorded_document_again(house: House, tmp_path: Path, out: Path) -> None:
    """AW-4, DA-1, DA-2. SIGKILL in the middle of the MAP; another worker goes on, and the report is there once.

    A document whose reading is recorded is not read again, one that was under way is; each source has a run of its
    own; what a person asked for is in the one file, and the outcome is what a person decided.
    """
    async with house.with_app(app):
        pass  # published
    run_id = await house.start(QUESTION, "research")
    here = {HANGS_AT: "4"}
    # The one that hangs holds a place of four; the others go on, so some are recorded and some are not.
    await killed_when(lambda: readings(out).total() >= 4, "four readings", house, APP, tmp_path, **here)
    recorded = {step.path for step in await house.steps(run_id) if step.name == "read_document" and step.result}
    assert 0 < len(recorded) < 6
    busy = replace(house, app=app)
    async with busy.worker():
        row = await published(busy, run_id)
    assert row.outcome == "published"
    found = readings(out)
    assert {step: found[step] for step in recorded} == dict.fromkeys(recorded, 1)
    assert len(found) == len((await values(busy, run_id))["found"]["documents"])
    (text,) = reports(out)
    assert "Revised, as was asked: What of the council?" in text
    assert sorted(path for path, _ in await told(busy, run_id, "agent.sub_run_started")) == SOURCES
    for path in SOURCES:
        sub = await busy.run(ids.sub_run_id(run_id, path))
        assert (sub.status, sub.workflow_name, sub.parent_run_id) == ("COMPLETED", "source-review", run_id)
    (written,) = [step for step in await busy.steps(run_id) if step.name == "save_report"]
    assert names(out)[0].endswith(f"-{written.step_id}.md")


async def test_where_nothing_is_found_a_person_ends_it(house: House, out: Path) -> None:
    """DA-12. The run waits for a person, and ends as that person says; there is no file."""
    async with house.with_app(shipped) as busy:
        run_id = await busy.start({"question": "Кто построил дирижабль?"}, "research")
        await busy.review_at(run_id, "nothing")
        await busy.decide(run_id, "close")
        assert (await busy.reaches(run_id, "COMPLETED")).outcome == "nothing_found"
    assert reports(out) == []


async def test_a_dropped_report_is_not_written(house: House, out: Path) -> None:
    async with house.with_app(shipped) as busy:
        run_id = await busy.start({"question": "橋の納期が遅れる理由は何ですか"}, "research")
        await busy.review_at(run_id, "publish")
        assert "鋼材の不足です。 [1]" in (await values(busy, run_id))["report"]["markdown"]
        await busy.decide(run_id, "drop")
        assert (await busy.reaches(run_id, "COMPLETED")).outcome == "dropped"
    assert reports(out) == []


@pytest.mark.timeout(600)  # 600 activities, which a busy machine does at ten a second
async def test_two_hundred_documents(house: House, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AW-4. A MAP of 200 branches, four under way at a time; the run's own values stay within their bounds."""
    root = tmp_path / "many"
    for number in range(200):
        file = root / f"s{number % 5}" / f"{number:03}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"The lamp of house {number} was lit by keeper {number} in the evening.")
    monkeypatch.setenv(ROOT, str(root))
    async with house.with_app(app) as busy:
        run_id = await busy.start({"question": "Who lit the lamp?", "limit": 200}, "research")
        await busy.reaches(run_id, "AWAITING_REVIEW", deadline_s=500)
        await busy.decide(run_id, "publish")
        await busy.reaches(run_id, "COMPLETED")
    assert readings(out) == Counter(
        {f"read.1/document.{number}/exchange.1/read_document.1": 1 for number in range(1, 201)}
    )
    (text,) = reports(out)
    assert text.count("was lit by keeper") > 12
