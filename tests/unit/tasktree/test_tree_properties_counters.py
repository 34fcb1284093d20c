"""A tree that goes from one Commander to the next: whatever was open goes on, and no path is given twice."""

import asyncio
import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from casework.tasktree import Commander, Job, TaskNode, call, handler, submit


@handler
async def open_handler(gate: asyncio.Event) -> None:
    await gate.wait()


class OpenJob(Job):
    """Its body is over at once, and what it returned stays open until the gate opens."""

    def __init__(self, gate: asyncio.Event) -> None:
        self.gate = gate

    async def task(self) -> Any:
        return open_handler(self.gate)


class Relay(RuleBasedStateMachine):
    """Opens and ends nodes anywhere in a tree, and at rest cuts the run and lets a successor take over."""

    names = st.sampled_from(["a", "b", "c d", "prüfung"])

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.given: set[str] = set()  # paths, ever
        self.open: dict[str, tuple[TaskNode, asyncio.Event]] = {}
        self.at_rest: dict[str, str] = {}  # path -> kind, of what the successor has not re-opened yet
        self.cuts = 0
        self.keep: Any = "all"
        self.commander = Commander()
        self.loop.run_until_complete(self.commander.__aenter__())

    def settle(self) -> None:
        async def turn() -> None:
            for _ in range(6):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turn())

    def parent_of(self, which: int) -> TaskNode:
        places = [self.commander, *(node for node, _ in self.open.values())]
        return places[which % len(places)]

    def attach(self, kind: str, name: str, parent: TaskNode, ordinal: int = 0) -> str:
        gate = asyncio.Event()
        node: Any = OpenJob(gate).named(name) if kind == "job" else open_handler(gate).named(name)
        if ordinal:
            node.reopen(ordinal)

        async def start() -> None:
            submit(node, parent) if kind == "job" else call(node, parent)

        self.loop.run_until_complete(start())
        self.settle()
        self.open[node.path] = (node, gate)
        return str(node.path)

    @rule(kind=st.sampled_from(["job", "handler"]), name=names, which=st.integers(0, 30))
    def begin(self, kind: str, name: str, which: int) -> None:
        self.give_new(kind, name, self.parent_of(which))

    def give_new(self, kind: str, name: str, parent: TaskNode) -> None:
        path = self.attach(kind, name, parent)
        assert path not in self.given, "a path was given twice"
        self.given.add(path)

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 30))
    def end(self, which: int) -> None:
        """Opens the gate of one node; it ends when nothing is open below it."""
        path = list(self.open)[which % len(self.open)]
        self.open[path][1].set()
        self.settle()
        self.forget_the_ended()

    @precondition(lambda self: self.at_rest)
    @rule(which=st.integers(0, 30), name=names)
    def take_up(self, which: int, name: str) -> None:
        """Re-opens a node that was at rest, if its parent is open again, and gives it a child."""
        path = list(self.at_rest)[which % len(self.at_rest)]
        above = path.rpartition("/")[0]
        if above and above not in self.open:
            return
        parent = self.open[above][0] if above else self.commander
        own, _, ordinal = path.rpartition("/")[2].rpartition(".")
        kind = self.at_rest.pop(path)
        spoken = own.replace("%20", " ").replace("%C3%BC", "ü")
        assert self.attach(kind, spoken, parent, int(ordinal)) == path
        self.give_new("handler", name, self.open[path][0])

    @rule(keep=st.sampled_from(["all", "failed", "none"]))
    def cut(self, keep: str) -> None:
        """The run ends at rest, and a successor begins with its counters, through JSON."""
        counters = json.loads(json.dumps(self.commander.export_counters()))
        assert set(counters) == {"", *self.open, *self.at_rest}
        for path, (node, _) in self.open.items():
            self.at_rest[path] = "job" if isinstance(node, Job) else "handler"
        self.leave()
        self.open.clear()
        self.cuts += 1
        self.commander = Commander(counters=counters, keep=keep)  # type: ignore[arg-type]
        self.loop.run_until_complete(self.commander.__aenter__())

    def forget_the_ended(self) -> None:
        self.open = {path: one for path, one in self.open.items() if not one[0].state.final}

    def leave(self) -> None:
        async def leaving() -> None:
            self.commander.exit()
            await self.commander.__aexit__(None, None, None)

        self.loop.run_until_complete(leaving())

    @invariant()
    def what_is_open_has_its_path(self) -> None:
        assert all(node.path == path and not node.state.final for path, (node, _) in self.open.items())

    def teardown(self) -> None:
        self.leave()
        assert asyncio.all_tasks(self.loop) == set()
        self.loop.close()


Relay.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


class TestRelay(Relay.TestCase):  # type: ignore[misc, valid-type]
    """TT-25, TT-27. Whatever was released, a successor gives no path twice and re-opens what was at rest."""
