"""The talk in a terminal: `python -m casework.examples.group_talk`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from casework.examples.group_talk.committee import OPENING, SCRIPTS, seat
from casework.examples.group_talk.endpoint import EndpointVoices
from casework.examples.group_talk.parts import Voices
from casework.examples.group_talk.scripted import ScriptedVoices
from casework.examples.group_talk.talk import PASSED, ROUNDS, GroupTalkManager, TalkToAll
from casework.tasktree import Commander, NodeFailedError


class Paper:
    """Prints what is said, piece by piece, a paragraph for each who speaks."""

    def __init__(self) -> None:
        self._begun = False

    def hear(self, speaker: str, piece: str) -> None:
        """A piece of what `speaker` says; an empty one ends it."""
        if not piece:
            print("\n")
        else:
            print(f"{'' if self._begun else speaker + ': '}{piece}", end="", flush=True)
        self._begun = bool(piece)


def options(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m casework.examples.group_talk", description=__doc__)
    parser.add_argument("--model", help="ask this model for every role; the key is OPENAI_API_KEY")
    parser.add_argument("--base-url", help="where the model is asked, as in http://127.0.0.1:11434/v1")
    parser.add_argument("--opening", type=Path, help="file with what the chair says first")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"replies at most (default {ROUNDS})")
    parser.add_argument("--pace", type=float, default=0.0, help="seconds that a word of a scripted role takes")
    found = parser.parse_args(words)
    if found.base_url and not found.model:
        parser.error("--base-url needs --model")
    if found.rounds < 0 or found.pace < 0:
        parser.error("--rounds and --pace are 0 or more")
    return found


async def hold(given: argparse.Namespace) -> int:
    """Hold the talk; 0 if it came to an end of its own."""
    opening = OPENING if given.opening is None else _read(given.opening)
    async with AsyncExitStack() as stack:
        voices: Voices = ScriptedVoices(SCRIPTS, given.pace)
        asked = ""
        if given.model:
            voices = await stack.enter_async_context(endpoint := EndpointVoices(given.model, given.base_url))
            asked = f" (asked: {endpoint.address})"
        manager = seat(GroupTalkManager(voices, opening, rounds=given.rounds, hear=Paper().hear))
        commander = Commander()
        failed = None
        try:
            await commander.run(manager)
        except NodeFailedError as fault:
            failed = fault.__cause__
    why = manager.end_reason if failed is None else f"{str(failed).rstrip('.')}{asked}"
    print(f"It ends: {why}.\n")
    show_rounds(manager)
    print(commander.render())
    return 0 if failed is None else 1


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"The opening {str(file)!r} cannot be read: {error.strerror}. Name a text file.") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"The opening {str(file)!r} is no text in UTF-8: {error}. Name a text file.") from error


def show_rounds(manager: GroupTalkManager) -> None:
    """Who wanted to speak in each round, and what became of it."""
    for talk in manager.children:
        for role, outcome in (talk.result or {}).items():
            if isinstance(talk, TalkToAll) and outcome != PASSED:
                print(f"Round {talk.number + 1}: {role}: {outcome}")
    print()


def main(words: list[str] | None = None) -> int:
    """Run it."""
    try:
        return asyncio.run(hold(options(words)))
    except KeyboardInterrupt:
        return 130
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
