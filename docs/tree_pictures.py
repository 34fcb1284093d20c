"""The pictures of the page about the task tree, drawn by the tree itself: `python -m docs.tree_pictures` writes them.

Their trees run in an event loop whose time jumps from one timer to the next, so that a picture is the same each time.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from casework.tasktree import Commander, Job, NodeFailedError, call, handler, mermaid_timeline, submit, svg_timeline

FOLDER = Path(__file__).parent / "pictures"
PAGE = Path(__file__).parent / "concepts/task_tree.md"


class JumpingLoop(asyncio.SelectorEventLoop):
    """Nobody waits for time to pass."""

    _shown = 0.0

    def time(self) -> float:
        """Where it has jumped to."""
        return self._shown

    def _run_once(self) -> None:
        ready, timers = self._ready, self._scheduled  # type: ignore[attr-defined]  # asyncio's own, without types
        if timers and not ready:
            self._shown = max(self._shown, timers[0]._when)
        super()._run_once()  # type: ignore[misc]  # asyncio's own, without types


@handler
async def work(seconds: float, *, fails: bool = False) -> None:
    """A service that answers after a while."""
    await asyncio.sleep(seconds)
    if fails:
        raise ConnectionError("the register does not answer")


class Underwrite(Job):
    """Two checks side by side, then the decision, which is a Job of its own."""

    async def task(self) -> Any:
        """Out of the queue."""
        return checks()


@handler
async def checks() -> None:
    """Goes on in the node of the Job."""
    credit = call(work(1.2).named("credit_check"))
    fraud = call(work(0.7).named("fraud_check"))
    await credit
    await fraud
    submit(Decide())


class Decide(Job):
    """Waits for a model."""

    async def task(self) -> None:
        """Its one call."""
        await work(0.9).named("model")


class Careless(Job):
    """One call fails, and nobody awaits it: the others are terminated."""

    async def task(self) -> None:
        """Returns at once."""
        call(work(0.5).named("credit_check"))
        call(work(0.8, fails=True).named("register"))
        call(work(3.0).named("fraud_check"))


def run(job: Job) -> Commander:
    """The tree of `job`, when it has ended in whatever way."""
    commander = Commander()
    with asyncio.Runner(loop_factory=JumpingLoop) as runner, contextlib.suppress(NodeFailedError):
        runner.run(commander.run(job))
    return commander


def pictures() -> dict[Path, str]:
    """Each picture by its file."""
    return {
        FOLDER / "task_tree_good.svg": svg_timeline(run(Underwrite())),
        FOLDER / "task_tree_failed.svg": svg_timeline(run(Careless())),
    }


def texts() -> list[str]:
    """What the page shows in its own text: a tree rendered, and one in Mermaid."""
    return [run(Underwrite()).render() + "\n", mermaid_timeline(run(Underwrite()))]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in pictures().items():
        path.write_text(text, encoding="utf-8")
    print("\n".join(texts()))
