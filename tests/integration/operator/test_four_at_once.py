"""DA-32 whole: at one moment each of an operator's commands tells exactly its one run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from casework.agents import ModelAnswer, ModelRequest, Request, ToolContext, tool
from casework.app import App
from casework.errors import RetryableError, ToldError
from tests.integration.durable.apps import errand
from tests.integration.durable.conftest import eventually
from tests.integration.operator.conftest import Site


def _does(request: ModelRequest) -> ModelAnswer:
    """Ask for the tool that the run's input names, once; then say what it said."""
    told = [message.content for message in request.messages if message.role == "tool"]
    if told:
        return ModelAnswer(text=told[-1])
    name = next(message.content for message in request.messages if message.role == "user").split()[-1]
    return ModelAnswer(requests=(Request("c", name, {}),))


class Tools:
    """Tools that each bring a run to one of the states, until `go_on` is set."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        loop = asyncio.get_running_loop()

        async def opened() -> None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.go_on.wait(), loop))

        @tool(effects=False)
        async def collect() -> str:
            """Collect evidence, slowly."""
            await opened()
            return "evidence"

        @tool(effects=False)
        def ask() -> str:
            """Be quick."""
            return "quick"

        @tool(effects=False)
        async def stumble(ctx: ToolContext) -> str:
            """Fail, then be tried again."""
            if ctx.attempt == 1:
                raise RetryableError("the bureau answered 503", retry_after=300)
            return "found"

        @tool(effects=False)
        def refuse() -> str:
            """Say no for good."""
            raise ToldError("refuse: there is no such applicant. Ask for another.")

        @tool(effects=False)
        def after_lock() -> str:
            """Be quick as well."""
            return "written at last"

        self.all = (collect, ask, stumble, refuse, after_lock)

    def app(self, folder: Path) -> App:
        made = errand(folder, self.all, _does)
        manifest = (folder / "errand.yaml").read_text().replace('"Do the errand."', '"Use {{ input.tool }}"')
        (folder / "errand.yaml").write_text(
            manifest.replace(
                "  initialNode: act",
                "  initialNode: act\n  input: {type: object, required: [tool], properties: {tool: {type: string}}}",
            )
        )
        return App(tools=self.all, manifests=(folder / "errand.yaml",), scripts={"runner": _does}) if made else made


async def test_each_command_tells_its_one(site: Site, tmp_path: Path) -> None:
    """DA-32. One run collects evidence, one awaits review, one retries a tool, one waits for the database, one's tool
    failed for good: at one moment each of the commands tells exactly its one, and after the faults all go on.
    """
    tools = Tools()
    busy = await site.on(tools.app(tmp_path))
    async with busy.worker():
        waiting = await busy.start({"tool": "ask"}, "errand")
        await busy.reaches(waiting, "AWAITING_REVIEW")
        failed = await busy.start({"tool": "refuse"}, "errand")
        collecting = await busy.start({"tool": "collect"}, "errand")
        retrying = await busy.start({"tool": "stumble"}, "errand")
        row = await busy.accept({"tool": "after_lock"}, "errand")
        with site.admin() as locked, locked.transaction():
            locked.execute("select 1 from agent_ops.agent_runs where run_id = %s for update", (row.run_id,))
            await busy.start({"tool": "after_lock"}, "errand", run_id=row.run_id)
            await busy.reaches(failed, "AWAITING_REVIEW")
            await busy.decide(failed, "approve")
            await busy.reaches(failed, "COMPLETED")

            fault = await site.status_with("faults", "broken", str(row.run_id))
            retry = await site.is_doing(retrying, "retrying")
            reviews, tried, gone = await asyncio.gather(
                site.api("/v1/reviews"),
                site.api("/v1/steps", state="retrying"),
                site.api("/v1/steps", state="failed"),
            )
            doing = {run: await site.doing(run) for run in (collecting, waiting, row.run_id, failed)}

        assert [each["run_id"] for each in reviews["items"]] == [str(waiting)]
        [again] = tried["items"]
        assert (again["run_id"], again["attempt"], again["attempts"]) == (str(retrying), 1, 3)
        assert "503" in again["error"]
        assert again["next_attempt_at"] == retry["next_attempt_at"] is not None
        [refused] = gone["items"]
        assert (refused["run_id"], refused["how"], refused["attempt"]) == (str(failed), "told", 1)
        assert fault.facts["runs"] == [fault.facts["runs"][0]]
        assert "lock" in fault.facts["runs"][0]["reason"] or "timeout" in fault.facts["runs"][0]["reason"]
        assert [doing[run]["kind"] for run in (collecting, waiting, row.run_id, failed)] == [
            "working", "waiting_for_person", "store_fault", "ended"
        ]  # fmt: skip
        assert "collect under way" in doing[collecting]["text"]
        tools.go_on.set()
        await busy.reaches(row.run_id, "AWAITING_REVIEW", deadline_s=60)
        await busy.reaches(collecting, "AWAITING_REVIEW")

        async def told() -> list[Any]:
            events = await busy.events(row.run_id)
            return [event.data for event in events if event.kind == "agent.store_unavailable"]

        [episode] = await eventually(told, "the wait is told")
        assert episode["waited"] >= 1
        assert (await site.status())["faults"].state == "fine"
