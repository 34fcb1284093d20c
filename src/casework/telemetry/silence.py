"""Keeping the SDK's complaints short."""

from __future__ import annotations

import logging
import time

_PAUSE_S = 60.0


class OncePerMinute(logging.Filter):
    """Lets one record through in a minute, and replaces what it says."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words
        self._next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + _PAUSE_S
        record.msg, record.args, record.exc_info, record.exc_text = self._words, (), None, None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True
