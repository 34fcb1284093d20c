"""The kinds of runs whose histories are kept: how each is brought about, on a house with a worker at work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

from casework.agents import ModelAnswer, ModelRequest, Request, tool
from casework.durable.contracts import CancelRequest, Decision
from casework.errors import FatalError, ToldError
from casework.examples.loan_underwriting import app as loan_app
from tests.integration.durable.apps import asking, errand, gated
from tests.integration.durable.conftest import APPLICATION, House
from tests.integration.durable.forked_runs import forked as fork_of
from tests.integration.durable.parts import early
from tests.replay import graph_kinds, monitor_kinds, tray_kinds, waiting_kinds
from tests.replay.kept_trees import app as kept_trees

Kind = Callable[[House, Path], Awaitable[UUID | str]]
"""Gives the id of the run, which is that of its Temporal workflow; of a tray that of the workflow alone."""
KINDS: dict[str, Kind] = {}


def kind(make: Kind) -> Kind:
    KINDS[make.__name__] = make
    return make


@kind
async def approved_after_more_info(house: House, _: Path) -> UUID:
    async with house.with_app(loan_app) as busy:
        run_id = await busy.start(APPLICATION)
        await busy.reaches(run_id, "AWAITING_REVIEW")
        await busy.decide(run_id, "more_info", "Is the delinquency settled?")
        await busy.reaches(run_id, "AWAITING_REVIEW", turn=2)
        await busy.decide(run_id, "approve")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


@kind
async def declined_at_the_turn_limit(house: House, _: Path) -> UUID:
    async with house.with_app(loan_app) as busy:
        run_id = await busy.start(APPLICATION, turn_limit=1)
        await busy.reaches(run_id, "AWAITING_REVIEW")
        review = str((await busy.review(run_id)).review_id)
        for number, command in enumerate(("more_info", "nonsense", "reject")):
            made = Decision(review, f"d{number}", command, "because", "rita")
            await busy.runs.decide_and_confirm(str(run_id), made, 20)
        await busy.reaches(run_id, "COMPLETED")
    return run_id


@kind
async def cancelled_by_a_person(house: House, _: Path) -> UUID:
    async with house.with_app(loan_app) as busy:
        run_id = await busy.start(APPLICATION)
        await busy.reaches(run_id, "AWAITING_REVIEW")
        await busy.runs.cancel(str(run_id), CancelRequest("olga", "withdrawn"))
        await busy.reaches(run_id, "CANCELLED")
    return run_id


@kind
async def cancelled_by_the_engine(house: House, _: Path) -> UUID:
    async with house.with_app(loan_app) as busy:
        run_id = await busy.start(APPLICATION)
        await busy.reaches(run_id, "AWAITING_REVIEW")
        await busy.client.get_workflow_handle(str(run_id)).cancel()
        await busy.reaches(run_id, "CANCELLED")
    return run_id


@kind
async def told_refused_and_given_up(house: House, folder: Path) -> UUID:
    """A tool that refuses, one that is given up after its attempts, one that does not exist."""

    @tool(effects=False)
    def refuses() -> str:
        """Refuse."""
        raise ToldError("not today")

    @tool(effects=False)
    def breaks() -> str:
        """Break."""
        raise ConnectionError("the line is dead")

    script = asking([("refuses", {}), ("breaks", {}), ("unheard_of", {})])
    async with house.with_app(errand(folder, [refuses, breaks], script)) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        await busy.decide(run_id, "approve")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


@kind
async def failed_by_a_tool(house: House, folder: Path) -> UUID:
    @tool(effects=False)
    def closed() -> str:
        """Look."""
        raise FatalError("closed for good")

    async with house.with_app(errand(folder, [closed], asking([("closed", {})]))) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "FAILED")
    return run_id


@kind
async def failed_by_its_model(house: House, folder: Path) -> UUID:
    def refused(_: ModelRequest) -> ModelAnswer:
        raise FatalError("the account is closed")

    async with house.with_app(errand(folder, [], refused)) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "FAILED")
    return run_id


@kind
async def two_approvals(house: House, folder: Path) -> UUID:
    async with house.with_app(gated(folder)) as busy:
        run_id = await busy.start({"weight": 5}, "gated")
        for node in ("first", "second"):
            await busy.review_at(run_id, node)
            await busy.decide(run_id, "approve")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


@kind
async def caught_by_an_error_edge(house: House, folder: Path) -> UUID:
    async with house.with_app(gated(folder)) as busy:
        run_id = await busy.start({"weight": -1}, "gated")
        await busy.review_at(run_id, "second")
        await busy.decide(run_id, "reject")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


@kind
async def ended_without_a_person(house: House, folder: Path) -> UUID:
    async with house.with_app(gated(folder)) as busy:
        run_id = await busy.start({"weight": 1}, "gated")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


@kind
async def a_free_tree(house: House, _: Path) -> UUID:
    async with house.with_app(kept_trees) as busy:
        run_id = await busy.start({}, "kept-talk")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


@kind
async def a_free_tree_at_rest_cancelled(house: House, _: Path) -> UUID:
    async with house.with_app(kept_trees) as busy:
        run_id = await busy.start({}, "kept-talk")
        await busy.reaches(run_id, "RUNNING")
        await busy.runs.cancel(str(run_id), CancelRequest("olga", "enough"))
        await busy.reaches(run_id, "CANCELLED")
    return run_id


@kind
async def rolled_over(house: House, folder: Path) -> UUID:
    """The last part is the one that is kept under this name: it begins with what the first ones carried."""

    def script(request: ModelRequest) -> ModelAnswer:
        read = sum(message.role == "tool" for message in request.messages)
        if read < 8:
            return ModelAnswer(requests=(Request(f"c{read}", "look", {}),))
        return ModelAnswer(text=f"{read} looks")

    @tool(effects=False)
    def look() -> str:
        """Look."""
        return "seen"

    async with early(house, 40).with_app(errand(folder, [look], script)) as busy:
        run_id = await busy.start({}, "errand")
        await busy.reaches(run_id, "AWAITING_REVIEW")
        await busy.decide(run_id, "more_info", "Sure?")
        await busy.reaches(run_id, "AWAITING_REVIEW", turn=2)
        await busy.decide(run_id, "approve")
        await busy.reaches(run_id, "COMPLETED")
    return run_id


for each in (*graph_kinds.ALL, *tray_kinds.ALL, *waiting_kinds.ALL, *monitor_kinds.ALL):
    kind(each)


@kind
async def forked(house: House, _: Path) -> UUID:
    """Begun in the middle of a turn, with steps that it took over."""
    async with house.with_app(loan_app) as busy:
        source = await busy.start(APPLICATION)
        await busy.reaches(source, "AWAITING_REVIEW")
        run_id = (await fork_of(busy, source, step="underwrite.1/exchange.2/model.1")).row.run_id
        await busy.reaches(run_id, "AWAITING_REVIEW")
        await busy.decide(run_id, "approve")
        await busy.reaches(run_id, "COMPLETED")
    return run_id
