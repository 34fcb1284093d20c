"""What a run tells its rows. Entries as data and the order they are sent in; no SQL, no clock, no I/O.

The workflow makes entries, an activity carries them, the store applies them. Every entry can be applied twice: its
key is derived from owner and path, and the store writes it only over a row that may still change.
"""

from casework.projection.entries import (
    ContextEntry,
    DecisionEntry,
    Entry,
    EventEntry,
    LogEntry,
    MessageEntry,
    ReviewEntry,
    RunEntry,
    StepEntry,
    from_plain,
    to_plain,
)
from casework.projection.outbox import Outbox, Parcel

__all__ = [
    "ContextEntry",
    "DecisionEntry",
    "Entry",
    "EventEntry",
    "LogEntry",
    "MessageEntry",
    "Outbox",
    "Parcel",
    "ReviewEntry",
    "RunEntry",
    "StepEntry",
    "from_plain",
    "to_plain",
]
