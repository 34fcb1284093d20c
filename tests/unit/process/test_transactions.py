"""Transactions as values, and what is recorded of their failures."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from casework.errors import BusinessError, InputError, TransitionError, UnserialisableError
from casework.process import DEFAULT_STATUSES, HAS_ERROR, ErrorEntity, ErrorType, Severity, StatusSet
from casework.process.failures import SHORT_LIMIT, Spot, error_entity
from casework.process.transactions import Transaction, begin, changed, child, failed, moved
from casework.store.processes.plain_rows import changed_row

AT = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
LATER = AT + timedelta(minutes=5)
ID = UUID(int=1)
SHORT = StatusSet.of({"NEW": "COMPLETED"}, initial="NEW")


def new(**more: Any) -> Transaction:
    return begin(DEFAULT_STATUSES, "INTAKE_IN_PROGRESS", uuid=ID, at=AT, **more)


def test_a_transaction_has_its_fields() -> None:
    """BP-1. A Transaction carries identity, status, claim, times, place, key, priority, data, and its two flags."""
    made = new(data={"amount": 5}, natural_key="mail-1", priority=3, due_time=LATER)
    assert (made.uuid, made.parent_uuid, made.status, made.status_before_error) == (
        ID,
        None,
        "INTAKE_IN_PROGRESS",
        None,
    )
    assert (made.claim_id, made.start_time, made.end_time, made.process, made.task) == (None, AT, None, None, None)
    assert (made.natural_key, made.priority, made.due_time, made.data) == ("mail-1", 3, LATER, {"amount": 5})
    assert (made.skip_until, made.straight_through) == (None, True)


def test_rules_see_a_transaction_as_plain_data() -> None:
    """The record of a Transaction has text for ids and instants, and the data as it is."""
    record = new(data={"amount": 5}, due_time=LATER).record()
    assert record["uuid"] == str(ID)
    assert record["due_time"].startswith("2026-03-01T09:05")
    assert record["data"] == {"amount": 5}


def test_an_end_has_its_time() -> None:
    """A terminal status stamps the end time; none before does."""
    made = begin(SHORT, "NEW", uuid=ID, at=AT)
    ended = moved(SHORT, made, "COMPLETED", LATER)
    assert (ended.status, ended.end_time) == ("COMPLETED", LATER)
    assert moved(DEFAULT_STATUSES, new(), "INTAKE_COMPLETED", LATER).end_time is None
    with pytest.raises(TransitionError, match="terminal"):
        moved(SHORT, ended, "NEW", LATER)


def test_a_failed_transaction_keeps_the_status_it_had() -> None:
    """HAS_ERROR keeps the status before the error, also when the Error process fails over it."""
    once = failed(DEFAULT_STATUSES, new())
    assert (once.status, once.status_before_error) == (HAS_ERROR, "INTAKE_IN_PROGRESS")
    held = moved(DEFAULT_STATUSES, once, "ERROR_IN_PROGRESS", LATER)
    assert failed(DEFAULT_STATUSES, held).status_before_error == "INTAKE_IN_PROGRESS"
    assert failed(SHORT, replace(new(), status="OF_OLD")).status_before_error == "OF_OLD"
    with pytest.raises(TransitionError, match="without an error"):
        moved(DEFAULT_STATUSES, new(), HAS_ERROR, LATER)


def test_children_have_ids_that_follow_from_the_split() -> None:
    """A repeated split makes the same children; they share the parent's status and tray, not its data or key."""
    parent = new(natural_key="mail-1", data={"a": 1})
    first = child(parent, "split.1", 1, {"b": 2}, LATER)
    assert first == child(parent, "split.1", 1, {"b": 2}, LATER)
    assert len({first.uuid, child(parent, "split.1", 2, {}, AT).uuid, child(parent, "split.2", 1, {}, AT).uuid}) == 3
    assert (first.parent_uuid, first.status, first.natural_key, first.data) == (ID, parent.status, None, {"b": 2})


def test_what_cannot_be_kept_is_refused_at_once() -> None:
    """Data without a plain form, a blank key and a naive instant are refused where they come in."""
    with pytest.raises(UnserialisableError, match="data"):
        new(data={"a": object()})
    with pytest.raises(UnserialisableError):
        changed(new(), handle=open)
    with pytest.raises(InputError, match="natural_key"):
        new(natural_key=" ")
    with pytest.raises(UnserialisableError, match="at"):
        begin(SHORT, "NEW", uuid=ID, at=datetime(2026, 3, 1))


def entity(error: Exception, attempt: int = 1) -> ErrorEntity:
    return error_entity(
        error,
        new(),
        Spot("intake", "validate", UUID(int=8)),
        root=UUID(int=9),
        attempt=attempt,
        started=AT,
        failed=LATER,
        environment={"BANK_PASSWORD": "hunter2hunter2"},
    )


def test_an_error_is_recorded_with_its_type() -> None:
    """What a task raises on purpose is BUSINESS with its own code; anything else is APPLICATION, named by its class."""
    business = entity(BusinessError("amount is missing", code="NO_AMOUNT", severity="WARNING"))
    assert (business.type, business.code, business.severity) == (ErrorType.BUSINESS, "NO_AMOUNT", Severity.WARNING)
    other = entity(TimeoutError("no answer"))
    assert (other.type, other.code) == (ErrorType.APPLICATION, "TimeoutError")
    assert (other.transaction, other.root, other.process, other.task) == (ID, UUID(int=9), "intake", "validate")
    assert (other.attempt, other.started, other.failed) == (1, AT, LATER)


def test_an_error_of_the_software_says_where_it_was_raised() -> None:
    """File and line in the project's own code, not in the library that it called; a BUSINESS error needs none."""
    with pytest.raises(ValueError, match="Expecting") as raised:
        json.loads("{")
    made = entity(raised.value)
    assert re.search(rf"\nat {re.escape(__file__)}:\d+$", made.full)
    assert "\n" not in made.short
    with pytest.raises(BusinessError) as meant:
        raise BusinessError("amount is missing", code="NO_AMOUNT")
    assert entity(meant.value).full == "BusinessError: amount is missing"


def test_an_error_record_is_one_row_for_an_attempt_and_holds_no_secret() -> None:
    """The id follows from step and attempt; secrets are struck and the short text is short."""
    made = entity(ConnectionError("login with hunter2hunter2 failed\n" + "x" * 1000))
    assert made == entity(ConnectionError("login with hunter2hunter2 failed\n" + "x" * 1000))
    assert made.uuid != entity(ConnectionError("x"), attempt=2).uuid
    assert "hunter2" not in made.short + made.full
    long = entity(ConnectionError("y" * 1000))
    assert len(long.short) <= SHORT_LIMIT < len(long.full)


def test_data_may_have_any_name() -> None:
    """BP-1. The names of data are the project's: none of them is taken for a parameter."""
    assert changed(new(), transaction="T-7", self=1, data=2).data == {"transaction": "T-7", "self": 1, "data": 2}


@pytest.mark.parametrize(
    ("before", "after"),
    [(1, True), (0, False), (Decimal("1.50"), Decimal("1.5")), ([1], [True]), ({"a": 1}, {"a": 1.0})],
)
def test_a_value_that_python_takes_for_the_same_is_written(before: Any, after: Any) -> None:
    """BP-9. What a Task has put in the place of an equal number is another value in the store."""
    transaction = new(data={"is": before})
    assert changed_row(transaction, changed(transaction, **{"is": after}), "p")["data"] == {"is": after}
    assert "data" not in changed_row(transaction, changed(transaction, **{"is": before}), "p")
