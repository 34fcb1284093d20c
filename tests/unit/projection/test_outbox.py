"""Entries travel until an activity that carried them has returned."""

from __future__ import annotations

import pytest

from casework.projection import (
    ContextEntry,
    DecisionEntry,
    Entry,
    EventEntry,
    Outbox,
    ReviewEntry,
    RunEntry,
    from_plain,
    to_plain,
)

AT = "2026-01-01T00:00:00.000000+00:00"


def event(number: int) -> EventEntry:
    return EventEntry(f"node.{number}", "agent.node_started", AT)


def paths(entries: tuple[dict[str, object], ...]) -> list[object]:
    return [entry["path"] for entry in entries]


def test_entries_stay_until_their_parcel_is_confirmed() -> None:
    outbox = Outbox()
    outbox.add(event(1), event(2))
    parcel = outbox.take()
    outbox.add(event(3))
    assert paths(parcel.entries) == ["node.1", "node.2"]
    assert len(outbox) == 3
    outbox.confirm(parcel)
    assert (outbox.confirmed, outbox.last) == (2, 3)
    assert paths(outbox.take().entries) == ["node.3"]


def test_of_calls_side_by_side_only_the_first_carries() -> None:
    outbox = Outbox()
    outbox.add(event(1))
    first, second = outbox.take(), outbox.take()
    assert (len(first.entries), len(second.entries)) == (1, 0)
    outbox.confirm(second)
    still = outbox.travelling
    outbox.confirm(first)
    assert (still, outbox.travelling, len(outbox)) == (True, False, 0)


def test_what_a_failed_call_carried_travels_again() -> None:
    outbox = Outbox()
    outbox.add(event(1))
    outbox.give_back(outbox.take())
    assert paths(outbox.take().entries) == ["node.1"]


ENTRIES: list[Entry] = [
    RunEntry(1, "RUNNING", 1, 1, AT, "a"),
    RunEntry(1, "FAILED", 0, 0, AT),
    event(1),
    ReviewEntry("d.1", "r", "d", 1, ("approve", "reject"), AT, refused={"more": "limit"}),
    DecisionEntry("d.1", "r", "x", "approve", "", "ann", AT, accepted=True, outcome="approved"),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: type(e).__name__)
def test_an_entry_survives_its_journey(entry: Entry) -> None:
    assert from_plain(to_plain(entry)) == entry


def test_an_entry_of_a_newer_release_is_read_without_what_is_new() -> None:
    assert from_plain({**to_plain(event(1)), "colour": "red"}) == event(1)
    with pytest.raises(KeyError):
        from_plain({"entry": "unheard-of"})


def test_a_parcel_is_no_larger_than_one_input_may_be() -> None:
    """Entries beyond the limit travel with the next activity; a single one always travels."""
    outbox = Outbox()
    large = EventEntry("node.1", "large", AT, "x" * 300_000)
    outbox.add(large, large, large, EventEntry("node.2", "huge", AT, "y" * 900_000), event(3))
    sizes = []
    while len(outbox):
        parcel = outbox.take()
        sizes.append(len(parcel.entries))
        outbox.confirm(parcel)
    assert sizes == [1, 1, 1, 1, 1]


def test_what_is_dropped_is_not_confirmed() -> None:
    outbox = Outbox()
    outbox.add(event(1), event(2))
    assert (outbox.drop(), len(outbox), outbox.confirmed, outbox.dropped) == (2, 0, 0, 2)


def test_an_output_that_is_null_is_read_again() -> None:
    """DA-5. A tool may give nothing, and so may a wait: the entry holds without its value."""
    entry = ContextEntry("look.1", "found", 1, None, "2026-01-01T00:00:00.000000Z")
    assert from_plain(to_plain(entry)) == entry
