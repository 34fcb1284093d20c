"""What the demo shows while it goes on, and how it asks the person at the terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from casework.cli.output import cell, words

if TYPE_CHECKING:
    from casework.cli.telling import Teller
    from casework.drills.demo import Answer

RULES = {
    "rule": "RULE",
    "comparison": "",
    "threshold": "THRESHOLD",
    "actual": "ACTUAL",
    "result": "RESULT",
    "note": "NOTE",
}


class DemoView:
    """Shows the demo through `voice`; with `person` the one at the terminal decides."""

    def __init__(self, voice: Teller, person: bool) -> None:
        self._voice = voice
        self._person = person
        self._shown: Any = None

    def heading(self, text: str) -> None:
        """What comes now."""
        self._voice.heading(text)

    def step(self, label: str, step: Mapping[str, Any]) -> None:
        """A row of the ledger: what was called, where it stands, what was found."""
        attempt = f", attempt {step['attempt']}" if step["attempt"] > 1 else ""
        found = f": {cell(words(step['result']), 100)}" if step["kind"] == "tool" and step["result"] else ""
        self._voice.say(f"{label}  {step['path']} {step['state']}{attempt}{found}")

    def case(self, run: Mapping[str, Any]) -> None:
        """Recommendation, policy rule by rule, evidence; evidence that is as before is not shown again."""
        self._voice.say(f"Turn {run['turn']}. The agent recommends: {_recommendation(run['recommendation'])}")
        if run["evidence"] == self._shown:
            self._voice.say("The evidence and what policy says of it are as before.")
            return
        self._shown = run["evidence"]
        evaluation = run["policy"]["evaluation"]
        if isinstance(evaluation, Mapping):
            named = f"{evaluation.get('policy_name')} version {evaluation.get('version')}"
            self._voice.say(f"Policy {named} says {evaluation.get('recommendation')}, rule by rule:")
            self._voice.table(list(evaluation.get("rules") or ()), RULES)
        for name, result in run["evidence"].items():
            if result != evaluation:
                self._voice.say(f"{name}: {cell(words(result), 200)}")

    async def ask(self, run: Mapping[str, Any]) -> Answer | None:
        """The person's decision; None where the scripted reviewer decides."""
        from casework.drills.demo import Answer

        if not self._person:
            return None
        commands = [name for name in run["review"]["decisions"] if name not in run["review"]["refused"]]
        command = ""
        while command not in commands:
            command = (await _line(f"\nYour decision ({' / '.join(commands)}): ")).replace("-", "_")
        reason = ""
        while not reason:
            reason = await _line("Your reason: ")
        return Answer(command, reason)


def _recommendation(value: Any) -> str:
    if isinstance(value, Mapping) and {"recommendation", "rationale"} <= set(value):
        return f"{words(value['recommendation'])}. {words(value['rationale'])}"
    return words(value)


async def _line(prompt: str) -> str:
    """A line from the terminal. Waits on the event loop and not in a thread, so that Ctrl-C ends it.

    Raises:
        Abort: the terminal was closed.
    """
    click.echo(prompt, nl=False)
    sys.stdout.flush()
    loop, typed = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = sys.stdin.readline()
    if not line:
        raise click.Abort
    return line.strip()
