"""The task tree, one concept a test. Read from top to bottom; each test needs only those above it."""

import asyncio
from typing import Any

import pytest

from casework.tasktree import (
    Callbacks,
    Commander,
    Job,
    NodeFailedError,
    NodeState,
    Stage,
    TaskNode,
    TimeLimitError,
    call,
    current_node,
    exit_run,
    handler,
    mermaid_timeline,
    submit,
    svg_timeline,
)


@handler
async def score(applicant: str) -> int:
    await asyncio.sleep(0)  # a service answers
    return len(applicant) * 100


async def test_a_job_is_run_by_a_commander() -> None:
    """TT-9. A Job has a body, `task`; a Commander runs it and returns what it returned."""

    class Greet(Job):
        async def task(self) -> str:
            return "hello"

    assert await Commander().run(Greet()) == "hello"


async def test_a_handler_is_called_and_awaited() -> None:
    """TT-7. Calling a handler starts it at once, beside the caller; awaiting it gives its result."""

    class Compare(Job):
        async def task(self) -> bool:
            ann = call(score("ann"))
            robert = call(score("robert"))
            return await ann < await robert

    assert await Commander().run(Compare()) is True


async def test_every_node_has_a_path() -> None:
    """TT-2. The path is made of names and ordinals, so the same tree has the same paths every time."""

    class Underwrite(Job):
        async def task(self) -> list[str]:
            calls = [call(score("ann")), call(score("bob")), call(score("cid").named("second opinion"))]
            return [node.path for node in calls]

    assert await Commander().run(Underwrite()) == [
        "Underwrite.1/score.1",
        "Underwrite.1/score.2",
        "Underwrite.1/second%20opinion.1",
    ]


async def test_jobs_wait_for_their_turn() -> None:
    """TT-5. Bodies of Jobs run one at a time, in the order in which they were submitted."""
    log: list[str] = []

    class Step(Job):
        async def task(self) -> None:
            log.append(f"{self.name} begins")
            await asyncio.sleep(0)
            log.append(f"{self.name} returns")

    await Commander().run(Step("first"), Step("second"))
    assert log == ["first begins", "first returns", "second begins", "second returns"]


async def test_a_job_submits_the_next() -> None:
    """TT-6. A Job can submit another one, below itself or below an ancestor, so that a long loop stays flat."""
    paths: list[str] = []

    class Round(Job):
        def __init__(self, number: int) -> None:
            self.number = number

        async def task(self) -> None:
            paths.append(self.path)
            if self.number < 3:
                submit(Round(self.number + 1), parent=self.commander)

    await Commander().run(Round(1))
    assert paths == ["Round.1", "Round.2", "Round.3"]


async def test_a_job_goes_on_as_a_handler() -> None:
    """TT-8. A Job with long work returns a handler call: it goes on in the Job's own node, and the queue is free."""
    log: list[str] = []

    @handler
    async def long_work() -> str:
        log.append(f"works in {current_node().path}")
        await asyncio.sleep(0)
        log.append("has worked")
        return "done"

    class Long(Job):
        async def task(self) -> Any:
            return long_work()

    class Short(Job):
        async def task(self) -> None:
            log.append("short")

    assert await Commander().run(Long(), Short()) == "done"
    assert log == ["works in Long.1", "short", "has worked"]


async def test_a_node_ends_with_its_last_descendant() -> None:
    """TT-4. A Job whose body has returned is ACTIVE until the handlers that it started have ended."""
    seen: list[str] = []

    class Parent(Job):
        async def task(self) -> None:
            call(child())

    @handler
    async def child() -> None:
        await asyncio.sleep(0)
        parent = current_node().parent
        assert parent is not None
        seen.append(parent.state)

    job = Parent()
    await Commander().run(job)
    assert seen == [NodeState.ACTIVE]
    assert job.state is NodeState.COMPLETED


async def test_a_listener_sees_everything() -> None:
    """TT-14. The Commander's listener is told every stage of every node."""
    seen: list[tuple[str, Stage]] = []

    class Ask(Job):
        async def task(self) -> int:
            return await score("ann")

    await Commander(listener=lambda node, stage: seen.append((node.path, stage))).run(Ask())
    assert seen == [
        ("Ask.1", Stage.AT_JOB_START),
        ("Ask.1/score.1", Stage.AT_HANDLER_START),
        ("Ask.1/score.1", Stage.AT_HANDLER_END),
        ("Ask.1", Stage.AT_JOB_END),
        ("", Stage.AT_COMMANDER_END),
    ]


async def test_callbacks_belong_to_one_node() -> None:
    """TT-13. Functions, sync or async, can be hung on the stages of one node; they may ask for the node."""
    log: list[str] = []

    async def tell(node: TaskNode, word: str) -> None:
        log.append(f"{node.name} {word} {node.result}")

    class Ask(Job):
        async def task(self) -> int:
            return await score("ann")

    callbacks = Callbacks().on(Stage.AT_JOB_END, tell, "gave", with_node=True)
    await Commander().run(Ask().merge(callbacks).on(Stage.AT_JOB_START, log.append, "it starts"))
    assert log == ["it starts", "Ask gave 300"]


async def test_an_error_is_handled_where_it_is_awaited() -> None:
    """TT-18. Whoever awaits a failing node receives its error, and may go on."""

    @handler
    async def fails() -> None:
        raise ValueError("no such applicant")

    class Careful(Job):
        async def task(self) -> str:
            try:
                await fails()
            except ValueError as error:
                return str(error)
            return "fine"

    assert await Commander().run(Careful()) == "no such applicant"


async def test_an_error_that_nobody_awaits_ends_the_run() -> None:
    """TT-18. It travels up to the root; `run` names the node, and the cause is the error itself."""

    @handler
    async def fails() -> None:
        raise ValueError("no such applicant")

    class Careless(Job):
        async def task(self) -> None:
            call(fails())

    with pytest.raises(NodeFailedError, match="no such applicant") as caught:
        await Commander().run(Careless())
    assert caught.value.path == "Careless.1/fails.1"
    assert isinstance(caught.value.__cause__, ValueError)


async def test_exit_ends_the_run_in_order() -> None:
    """TT-10. `exit_run` gives the result and ends all the rest: queued Jobs are dropped, handlers cancelled."""

    @handler
    async def for_ever() -> None:
        await asyncio.Event().wait()

    class Decide(Job):
        async def task(self) -> None:
            call(for_ever())
            submit(Decide())
            exit_run("enough")

    commander = Commander()
    assert await commander.run(Decide()) == "enough"
    assert commander.dropped == 1


async def test_a_commander_can_stay_open() -> None:
    """TT-9. Within `async with` a Commander takes Jobs until the block ends."""

    class Double(Job):
        def __init__(self, number: int) -> None:
            self.number = number

        async def task(self) -> int:
            return self.number * 2

    async with Commander() as commander:
        assert await submit(Double(2)) == 4
        assert await submit(Double(4)) == 8
    assert [job.path for job in commander.children] == ["Double.1", "Double.2"]


async def test_isolated_errors_stay_below() -> None:
    """TT-18. A node that isolates does not fail by errors that nobody received: it sees them in its children."""

    @handler
    async def fails() -> None:
        raise ValueError("no such applicant")

    class Careless(Job):
        async def task(self) -> str:
            call(fails())
            return "goes on"

    job = Careless().isolate()
    assert await Commander().run(job) == "goes on"
    assert [(node.state, str(node.exception)) for node in job.children] == [("EXCEPTION", "no such applicant")]


async def test_a_pressing_job_goes_first() -> None:
    """TT-12. Of the Jobs that wait in the queue the one of the highest priority is next; equals keep their order."""
    log: list[str] = []

    class Step(Job):
        async def task(self) -> None:
            log.append(self.name)

    class Plan(Job):
        async def task(self) -> None:
            submit(Step("usual"))
            submit(Step("usual too"))
            submit(Step("pressing"), priority=1)

    await Commander().run(Plan())
    assert log == ["pressing", "usual", "usual too"]


async def test_only_so_many_handlers_run_at_a_time() -> None:
    """TT-12. The others wait for a slot. One that awaits a node gives its slot back, so nesting never locks."""
    running, most = 0, 0

    @handler
    async def ask() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    @handler
    async def outer() -> None:
        await ask()

    class Many(Job):
        async def task(self) -> None:
            for _ in range(6):
                call(outer())

    await Commander(max_handlers=2).run(Many())
    assert most == 2


async def test_a_node_has_so_much_time() -> None:
    """TT-12. Seconds from the start of its body, all below included; then it fails, and its awaiter is told."""

    @handler
    async def for_ever() -> None:
        await asyncio.Event().wait()

    class Impatient(Job):
        async def task(self) -> str:
            try:
                await for_ever().within(0.01)
            except TimeLimitError:
                return "went without it"
            return "never"

    assert await Commander().run(Impatient()) == "went without it"


async def test_another_thread_hands_in_work() -> None:
    """TT-11. From a thread that is not the loop's; it gets a Future to wait on."""

    def elsewhere(commander: Commander) -> int:
        result: int = commander.call_threadsafe(score("ann")).result(timeout=30)
        return result

    async with Commander() as commander:
        assert await asyncio.to_thread(elsewhere, commander) == 300


async def test_what_has_ended_is_let_go_of() -> None:
    """TT-25, TT-27. With keep="none" no ended node stays in memory, and yet no path is given twice."""
    async with Commander(keep="none") as commander:
        paths = []
        for _ in range(3):
            node = call(score("ann"))
            paths.append(node.path)
            await node
        assert commander.children == ()
    assert paths == ["score.1", "score.2", "score.3"]


async def test_a_successor_goes_on_counting() -> None:
    """TT-27. Counters are plain data: another Commander, in another process if need be, goes on where this one was."""
    async with Commander() as first:
        await call(score("ann"))
        counters = first.export_counters()
    async with Commander(counters=counters):
        node = call(score("bob"))
        await node
    assert node.path == "score.2"


async def test_a_tree_is_looked_at() -> None:
    """TT-21. As text, as plain data, and as a picture of time."""

    class Ask(Job):
        async def task(self) -> int:
            return await score("ann")

    commander = Commander()
    await commander.run(Ask())
    assert [line.split()[:2] for line in commander.render().splitlines()] == [
        ["Commander", "COMPLETED"],
        ["Ask.1", "COMPLETED"],
        ["score.1", "COMPLETED"],
    ]
    assert [entry["step"] for entry in commander.snapshot()] == ["", "Ask.1", "score.1"]
    assert svg_timeline(commander).startswith("<svg")
    assert mermaid_timeline(commander).startswith("gantt")
