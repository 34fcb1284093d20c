"""Decisions and signals of a local run: from the command line, else from the one at the terminal."""

from __future__ import annotations

import asyncio
import re
import sys
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import click

from casework.cli.output import cell, gist, safe
from casework.errors import NotFoundError
from casework.graph.bundle import PinnedWorkflow
from casework.graph.commands import Decided, Wait
from casework.local.outside import REVIEWER, NobodyError, Question, check
from casework.review import command_name
from casework.trees.bundle import Pinned, PinnedTree, pinned_from_plain
from casework.values import Plain, loads_once

_ORDINAL = re.compile(r"\.\d+")


@dataclass(frozen=True)
class Given:
    """An answer of the command line: for a node or `node/branch`, or for a signal."""

    name: str
    value: Any


def decision(text: str) -> Given:
    """`NODE=DECISION[:REASON]` as an answer.

    Raises:
        ValueError: it is not written so.
    """
    node, sign, said = text.partition("=")
    name, _, reason = said.partition(":")
    if not sign or not node.strip() or not name.strip():
        raise ValueError(f"{text!r} is not NODE=DECISION[:REASON], as in --decide decision=approve")
    return Given(node.strip(), Decided(name.strip(), reason.strip(), REVIEWER))


def signal(text: str) -> Given:
    """`NAME[=JSON]` as a signal; without JSON the payload is null.

    Raises:
        ValueError: it is not written so.
    """
    name, sign, payload = text.partition("=")
    if not name.strip():
        raise ValueError(f"{text!r} is not NAME[=JSON], as in --signal paid='{{\"amount\": 1}}'")
    try:
        return Given(name.strip(), loads_once(payload) if sign else None)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{text!r:.100}: the payload is not JSON: {error}") from None


class Answers:
    """The world outside of a local run. Each answer of the command line is given once, in their order."""

    def __init__(self, decisions: Iterable[Given], signals: Iterable[Given], person: bool) -> None:
        self._decisions = _queues(decisions)
        self._signals = _queues(signals)
        self._person = person

    @property
    def unused(self) -> tuple[str, ...]:
        """Names of answers that nothing asked for."""
        return tuple(name for queues in (self._decisions, self._signals) for name, left in queues.items() if left)

    async def decide(self, question: Question) -> Decided:
        """The next answer for the node, else the person's."""
        for name in (_ORDINAL.sub("", question.path), question.node):
            if self._decisions.get(name):
                made: Decided = self._decisions[name].popleft()
                return replace(made, decision=command_name(made.decision, question.decisions))
        if not self._person:
            raise NobodyError(
                f"{question.path} asks for a decision and there is none. Add --decide {question.node}=DECISION "
                f"({', '.join(_open(question))}), once for each time it asks, or start it on a terminal."
            )
        return _asked(question)

    async def signal(self, wait: Wait, path: str) -> Plain:
        """The next payload of that name; with a time limit none may come."""
        if self._signals.get(wait.signal or ""):
            return self._signals[wait.signal or ""].popleft()
        if wait.duration_s is not None:
            await asyncio.Event().wait()
        if not self._person:
            raise NobodyError(
                f"{path} waits for signal {wait.signal!r} and there is none. Add --signal {wait.signal}=JSON, or start "
                "it on a terminal."
            )
        return _payload(wait, path)


def on_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def check_names(pinned: Pinned, decisions: Iterable[Given], signals: Iterable[Given]) -> None:
    """That each answer has somebody who could ask for it.

    Raises:
        NotFoundError: the workflow has no such node or signal; suggests the near one.
    """
    asking, waiting = _names(pinned)
    for what, given, known in (("node that asks a person", decisions, asking), ("signal", signals, waiting)):
        for each in given:
            if each.name not in known:
                raise NotFoundError(f"The workflow has no {what} {each.name!r}.{_near(each.name, known)}")


def _near(name: str, known: Collection[str]) -> str:
    from casework.cli.run_input import near

    return near(name, sorted(known))


def _names(pinned: Pinned) -> tuple[set[str], set[str]]:
    asking: set[str] = set()
    waiting: set[str] = set()
    for made in _all(pinned):
        for node in made.workflow.spec.nodes:
            for vertex, place in ((node, node.id), *((each, f"{node.id}/{each.id}") for each in node.branches or ())):
                if vertex.type == "HUMAN_APPROVAL":
                    asking |= {vertex.id, place}
                if vertex.signal is not None:
                    waiting.add(vertex.signal)
    return asking, waiting


def _all(pinned: Pinned) -> Iterator[PinnedWorkflow]:
    if isinstance(pinned, PinnedTree):
        return
    yield pinned
    for name in pinned.workflows:
        sub = pinned_from_plain(pinned.workflows[name])
        if isinstance(sub, PinnedWorkflow):
            yield sub


def _queues(given: Iterable[Given]) -> dict[str, deque[Any]]:
    queues: defaultdict[str, deque[Any]] = defaultdict(deque)
    for each in given:
        queues[each.name].append(each.value)
    return dict(queues)


def _open(question: Question) -> list[str]:
    return [name for name in question.decisions if name not in question.refused]


def _asked(question: Question) -> Decided:
    """The person's decision; asked until it counts."""
    click.echo(f"{question.path} asks for a decision.", err=True)
    if question.recommendation is not None:
        click.echo(f"The agent says: {cell(gist(question.recommendation), 2000)}", err=True)
    for name, why in question.refused.items():
        click.echo(f"{name} is refused now: {safe(why)}", err=True)
    while True:
        name = click.prompt("Decision", type=click.Choice(_open(question)), err=True)
        made = Decided(name, click.prompt("Reason", default="", show_default=False, err=True), REVIEWER)
        try:
            check(question, made, UUID(int=0))
        except NobodyError as error:
            click.echo(str(error), err=True)
        else:
            return made


def _payload(wait: Wait, path: str) -> Plain:
    while True:
        text = click.prompt(f"{path} waits for signal {wait.signal!r}; its payload as JSON", default="null", err=True)
        try:
            return loads_once(text)
        except (ValueError, RecursionError) as error:
            click.echo(f"That is not JSON: {error}.", err=True)
