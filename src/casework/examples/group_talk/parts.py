"""What a talk is made of: lines, roles, what a role has heard, and replies that are not read before they are wanted.

`Voices` is the port: whoever can answer for a role can take part in a talk. Pure, so it runs in a durable workflow.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

NOTHING = "PASS"
"""What a role answers that has nothing to say; no words at all mean the same."""
_AROUND = " \t\r\n.!?*_`'\"()[]"


@dataclass(frozen=True, slots=True)
class Line:
    """What one speaker said in one go. The round counts from 0, the opening; `broken_off`: there was more to come."""

    speaker: str
    words: str
    round: int
    broken_off: bool = False

    def __str__(self) -> str:
        return f"{self.speaker}: {self.words}{' (breaks off)' if self.broken_off else ''}"


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said since the role was asked last, its own words among it, and who took the floor before it then."""

    lines: tuple[Line, ...]
    denied_by: str | None = None

    @property
    def text(self) -> str:
        """All of it, as a model is told."""
        denied = f"(You wanted to speak, but {self.denied_by} had the floor. What you were about to say was not heard.)"
        return "\n\n".join([*([denied] if self.denied_by else []), *map(str, self.lines)])


class Role:
    """One who takes part. `brief` says who it is and what it wants."""

    def __init__(self, name: str, brief: str = "") -> None:
        self.name = name
        self.brief = brief
        self.denied_by: str | None = None
        self.spoke = -1
        """The round in which it spoke last; -1: never."""
        self._heard = 0

    def hears(self, minutes: list[Line]) -> Heard:
        """What it has not heard yet; from now on it has."""
        heard = Heard(tuple(minutes[self._heard :]), self.denied_by)
        self._heard, self.denied_by = len(minutes), None
        return heard

    def __repr__(self) -> str:
        return f"<Role {self.name}>"


class Voices(Protocol):
    """Who answers for the roles."""

    def reply(self, role: Role, heard: Heard) -> AsyncIterator[str]:
        """The role's answer in pieces, begun when the first is asked for. `PASS`, or no words: it has nothing to say.

        An asynchronous generator, so that it can be closed early.
        """
        ...


class Reply:
    """What one speaker is about to say, in pieces. Nothing is asked of it before `begins`."""

    def __init__(self, speaker: str, pieces: AsyncIterator[str]) -> None:
        self.speaker = speaker
        self._pieces = pieces
        self._read: list[str] = []

    async def begins(self) -> bool:
        """Read until it is clear whether there is something to say: as a rule, for one piece."""
        said = ""
        async for piece in self._pieces:
            self._read.append(piece)
            said += piece
            if not _may_be_nothing(said):
                return True
        return _bare(said) not in ("", NOTHING.casefold())

    async def words(self) -> AsyncIterator[str]:
        """All pieces, those that `begins` has read among them."""
        for piece in self._read:
            yield piece
        self._read.clear()
        async for piece in self._pieces:
            yield piece

    async def aclose(self) -> None:
        """Ask for no more: whoever answers stops."""
        close = getattr(self._pieces, "aclose", None)
        if close is not None:
            await close()


async def spoken(words: str) -> AsyncIterator[str]:
    """Words that are there already, as a reply has them."""
    yield words


def _bare(said: str) -> str:
    return said.strip(_AROUND).casefold()


def _may_be_nothing(said: str) -> bool:
    return NOTHING.casefold().startswith(_bare(said))
