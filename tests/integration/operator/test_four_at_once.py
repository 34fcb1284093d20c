"""DA-32 whole: at one moment each of an operator's commands tells exactly its one run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from casework.agents import ModelAnswer, ModelRequest, Request, ToolContext, tool
from casework.app import App
from casework.cli.root import code_of_run
from casework.errors import RetryableError, ToldError
from tests.docs.outputs import fits, shown
from tests.docs.pages import ROOT, blocks
from tests.integration.durable.apps import WORKFLOW
from tests.integration.durable.conftest import House
from tests.integration.operator import faulty
from tests.integration.operator.conftest import Site

PAGE = ROOT / "docs/how_to/tell_waits_from_faults.md"
SCHEMA = "{type: object, required: [tool], properties: {tool: {type: string}}}"


def _does(request: ModelRequest) -> ModelAnswer:
    """Ask for the tool that the run's input names, once; then say what it said."""
    told = [message.content for message in request.messages if message.role == "tool"]
    if told:
        return ModelAnswer(text=told[-1])
    name = next(message.content for message in request.messages if message.role == "user").split()[-1]
    return ModelAnswer(requests=(Request("c", name, {}),))


class Tools:
    """Tools that each bring a run to one of the states; the slow one until `go_on` is set."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

        @tool(effects=False)
        def income_verification() -> str:
            """Collect evidence, slowly."""
            self.go_on.wait(120)
            return "evidence"

        @tool(effects=False)
        def debt_check() -> str:
            """Be quick."""
            return "no debts"

        @tool(effects=False)
        def credit_check(ctx: ToolContext) -> str:
            """Fail, then be tried again much later."""
            if ctx.attempt == 1:
                raise RetryableError("the bureau answered 503", retry_after=300)
            return "found"

        @tool(effects=False)
        def employer_check() -> str:
            """Say no for good."""
            raise ToldError("employer_check: there is no such employer. Ask for its full name.")

        self.all = (income_verification, debt_check, credit_check, employer_check)

    def app(self, folder: Path) -> App:
        manifest = folder / "loan-check.yaml"
        text = WORKFLOW.format(adoption="pinned", tools=", ".join(tool.name for tool in self.all), exchanges=20)
        text = text.replace("name: errand", "name: loan-check").replace("Do the errand.", "Use {{ input.tool }}")
        manifest.write_text(text.replace("  initialNode: act", f"  initialNode: act\n  input: {SCHEMA}"))
        return App(tools=self.all, manifests=(manifest,), scripts={"runner": _does})


@dataclass
class Runs:
    """One run in each state."""

    waiting: UUID
    collecting: UUID
    retrying: UUID
    failed: UUID
    stuck: UUID


@asynccontextmanager
async def all_at_once(site: Site, folder: Path) -> AsyncIterator[tuple[House, Runs]]:
    """The five runs, each in its state; after it nothing stands in the way of any."""
    tools = Tools()
    busy = await site.on(tools.app(folder))

    async def start(name: str, **given: Any) -> UUID:
        return await busy.start({"tool": name}, "loan-check", **given)

    async with busy.worker():
        waiting, failed = await start("debt_check"), await start("employer_check")
        await busy.reaches(waiting, "AWAITING_REVIEW")
        await busy.reaches(failed, "AWAITING_REVIEW")
        await busy.decide(failed, "approve")
        await busy.reaches(failed, "COMPLETED")
        collecting, retrying = await start("income_verification"), await start("credit_check")
        stuck = (await busy.accept({"tool": "debt_check"}, "loan-check")).run_id
        made = Runs(waiting, collecting, retrying, failed, stuck)
        try:
            async with faulty.with_its_row_locked(site, stuck):
                await start("debt_check", run_id=stuck)
                await site.is_doing(retrying, "retrying")
                await site.status_with("faults", "broken", str(stuck))
                yield busy, made
        finally:
            tools.go_on.set()
        await busy.reaches(stuck, "AWAITING_REVIEW", deadline_s=60)
        await busy.reaches(collecting, "AWAITING_REVIEW")


async def test_each_question_tells_its_one(site: Site, tmp_path: Path) -> None:
    """DA-32. One run collects evidence, one awaits review, one retries a tool, one waits for the database, one's tool
    failed for good: at one moment each of the questions is answered with exactly its one.
    """
    async with all_at_once(site, tmp_path) as (_, runs):
        reviews, tried, gone, status = await asyncio.gather(
            site.api("/v1/reviews"),
            site.api("/v1/steps", state="retrying"),
            site.api("/v1/steps", state="failed"),
            site.status(),
        )
        doing = {run: await site.doing(run) for run in asdict(runs).values()}
        assert [each["run_id"] for each in reviews["items"]] == [str(runs.waiting)]
        [again], [refused] = tried["items"], gone["items"]
        assert (again["run_id"], again["attempt"], again["attempts"]) == (str(runs.retrying), 1, 3)
        assert "503" in again["error"]
        assert again["next_attempt_at"] == doing[runs.retrying]["next_attempt_at"] is not None
        assert (refused["run_id"], refused["how"], refused["attempt"]) == (str(runs.failed), "told", 1)
        [fault] = status["faults"].facts["runs"]
        assert fault["run_id"] == str(runs.stuck)
        assert "statement timeout" in fault["reason"]
        assert {run: found["kind"] for run, found in doing.items()} == {
            runs.collecting: "working",
            runs.waiting: "waiting_for_person",
            runs.stuck: "store_fault",
            runs.failed: "ended",
            runs.retrying: "retrying",
        }
        assert "income_verification under way" in doing[runs.collecting]["text"]
        assert {name: status[name].state for name in ("reviews", "retries", "failures", "incidents", "queue")} == {
            "reviews": "waits",
            "retries": "retries",
            "failures": "look",
            "incidents": "fine",
            "queue": "fine",
        }
    assert (await site.status())["faults"].state == "fine"


async def test_the_page_shows_what_one_gets(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """DA-32. The page of the four commands, typed as it says: each prints what the page shows."""
    for name, value in {**site.house.settings.as_environ(), "CASEWORK_TOKEN": site.token}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CASEWORK_API_URL", site.url)
    calls = [pair for block in blocks(PAGE) if block.language == "console" for pair in shown(block)]
    async with all_at_once(site, tmp_path) as (_, runs):
        for call, output in calls:
            ids = {"RUN": str(runs.stuck), "REVIEW": str(runs.waiting)}
            words = [ids.get(word, word) for word in call.words[1:]]
            await site.status_with("faults", "broken", str(runs.stuck))
            code = await asyncio.to_thread(code_of_run, words)
            printed = capsys.readouterr()
            assert code == (1 if words == ["status"] else 0), (words, printed.err)
            assert fits(output, printed.out), f"{words} prints\n{printed.out}"
    assert {" ".join(call.words) for call, output in calls if output} >= {
        "casework review list",
        "casework steps list --retrying",
        "casework steps list --failed",
        "casework status",
        "casework runs show RUN",
    }
