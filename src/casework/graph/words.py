"""Words of messages: texts that others wrote, shown so that they steer nothing, and the near name of a typo."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from casework.errors import UnserialisableError
from casework.values import dumps

# What moves a terminal's cursor, ends a line, turns the direction of writing, or is half a character.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def one_line(text: str) -> str:
    r"""`text` with each character that could steer a terminal, or feign a line, written out as in `\x1b`."""
    return _STEERING.sub(lambda found: ascii(found[0])[1:-1], text)


def shown(value: Any, limit: int = 60) -> str:
    """A wrong value as its writer knows it, not as Python does: `'a text'`, `true`, `5.0`, `{"a":1}`; cut if long."""
    if isinstance(value, str):
        return repr(value) if len(value) <= limit else f"{value[:limit]!r}..."
    try:
        text = dumps(value)
    except UnserialisableError:
        text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


def nearest(word: object, known: Iterable[str]) -> str:
    """` Did you mean 'agentRef'?` where `word` is near one of `known`, else nothing."""
    names = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(str(word).casefold(), names, n=1, cutoff=0.6)
    return f" Did you mean {names[near[0]]!r}?" if near else ""
