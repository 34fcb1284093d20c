"""Roles that follow a script: what one says is a function of all that it has heard, and of nothing else."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass

from casework.examples.group_talk.parts import NOTHING, Heard, Role

Script = Callable[[str], str]
"""From all that a role has heard so far, its own words among it, to what it says now; `PASS` for nothing."""
_WORD = re.compile(r"\S+\s*")


@dataclass(frozen=True, slots=True)
class Cue:
    """Once `after` was heard, the role wants to say `says`, until it was heard with it."""

    after: str
    says: str


def cued(cues: Iterable[Cue]) -> Script:
    """A script of cues: the first one that is due and not yet said."""
    kept = tuple(cues)

    def script(heard: str) -> str:
        return next((cue.says for cue in kept if cue.after in heard and cue.says not in heard), NOTHING)

    return script


class ScriptedVoices:
    """Answers by scripts, word by word, `pace` seconds each. A role without a script has nothing to say."""

    def __init__(self, scripts: Mapping[str, Script], pace: float = 0.0) -> None:
        self._scripts = dict(scripts)
        self._pace = pace
        self._heard: defaultdict[str, str] = defaultdict(str)

    async def reply(self, role: Role, heard: Heard) -> AsyncIterator[str]:
        """As `Voices.reply`."""
        self._heard[role.name] += heard.text + "\n\n"
        script = self._scripts.get(role.name)
        for word in _WORD.findall(NOTHING if script is None else script(self._heard[role.name])):
            await asyncio.sleep(self._pace)
            yield word
