"""What the demo shows while it goes on, and how it asks the person at the terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from casework.cli.output import cell
from casework.cli.parts_view import RULES, is_evaluation, told

if TYPE_CHECKING:
    from casework.cli.telling import Teller
    from casework.drills.demo import Answer


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
        found = f": {cell(told(step['result']), 100)}" if step["kind"] == "tool" and step["result"] else ""
        self._voice.say(f"{label}  {step['path']} {step['state']}{attempt}{found}")

    def case(self, run: Mapping[str, Any]) -> None:
        """Recommendation, policy rule by rule, evidence; evidence that is as before is not shown again."""
        self._voice.say(f"Turn {run['turn']}. The agent recommends: {_recommendation(run['recommendation'])}")
        if run["evidence"] == self._shown:
            self._voice.say("The evidence and what policy says of it are as before.")
            return
        self._shown = run["evidence"]
        evaluation = run["policy"]["evaluation"]
        if is_evaluation(evaluation):
            named = f"{evaluation.get('policy_name')} version {evaluation.get('version')}"
            self._voice.say(f"Policy {named} says {evaluation.get('recommendation')}, rule by rule:")
            self._voice.table(list(evaluation.get("rules") or ()), RULES)
        for name, result in run["evidence"].items():
            if result != evaluation:
                self._voice.say(f"{name}: {cell(told(result), 200)}")

    async def ask(self, run: Mapping[str, Any]) -> Answer | None:
        """The person's decision; None where the scripted reviewer decides."""
        from casework.drills.demo import Answer

        if not self._person:
            return None
        commands = [name for name in run["review"]["decisions"] if name not in run["review"]["refused"]]
        command = await self._command(commands)
        return Answer(command, await self._reason(command))

    async def _command(self, commands: list[str]) -> str:
        from casework.review.wording import command_name

        while True:
            command = command_name(await _line(f"\nYour decision ({' / '.join(commands)}): "), commands)
            if command in commands:
                return command
            self._voice.say(f"{told(command)} is not one of {', '.join(commands)}.")

    async def _reason(self, command: str) -> str:
        from casework.review.wording import NEEDS_REASON

        needed = command in NEEDS_REASON
        while True:
            reason = await _line("Your reason: " if needed else "Your reason (may be empty): ")
            if reason or not needed:
                return reason
            self._voice.say("A reason is needed here: it is what the agent is told.")


def _recommendation(value: Any) -> str:
    if isinstance(value, Mapping) and {"recommendation", "rationale"} <= set(value):
        return f"{told(value['recommendation'])}. {told(value['rationale'])}"
    return told(value)


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
