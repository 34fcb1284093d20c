"""The outbox: entries wait here until an activity that carried them has returned.

Entries get a number when they are added. A parcel takes all that are not confirmed; confirming a parcel drops what it
carried. A parcel whose activity failed is simply not confirmed: its entries travel again, and are applied again, which
changes nothing. Of calls that run side by side only the first takes a parcel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from casework.projection.entries import Entry, to_plain


@dataclass(frozen=True, slots=True)
class Parcel:
    """What one activity carries: plain entries, and the number of the last one."""

    entries: tuple[dict[str, Any], ...]
    last: int


EMPTY = Parcel((), 0)


class Outbox:
    """Entries that no returned activity has carried yet, oldest first. `confirmed` numbers the last that is a row."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, dict[str, Any]]] = []
        self._last = 0
        self._travelling = 0
        self.confirmed = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def last(self) -> int:
        """Number of the newest entry; it is a row once `confirmed` has reached it."""
        return self._last

    @property
    def travelling(self) -> bool:
        """Whether a parcel is on its way."""
        return self._travelling > 0

    def add(self, *entries: Entry) -> None:
        """Put entries at the end."""
        for entry in entries:
            self._last += 1
            self._waiting.append((self._last, to_plain(entry)))

    def drop(self) -> int:
        """Give up what is waiting and cannot be written; how many entries that were."""
        dropped = len(self._waiting)
        self._waiting.clear()
        self.confirmed = self._last
        return dropped

    def take(self) -> Parcel:
        """All that is waiting, or nothing while an earlier parcel is still on its way with the same entries."""
        if not self._waiting or self.travelling:
            return EMPTY
        self._travelling += 1
        return Parcel(tuple(data for _, data in self._waiting), self._last)

    def confirm(self, parcel: Parcel) -> None:
        """The activity with `parcel` returned: its entries are rows now."""
        self._land(parcel)
        self.confirmed = max(self.confirmed, parcel.last)
        self._waiting = [(number, data) for number, data in self._waiting if number > parcel.last]

    def give_back(self, parcel: Parcel) -> None:
        """The activity with `parcel` failed: its entries stay and travel with the next."""
        self._land(parcel)

    def _land(self, parcel: Parcel) -> None:
        if parcel.last:
            self._travelling -= 1
