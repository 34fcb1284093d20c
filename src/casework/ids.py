"""Identities: every key of the system is derived here, none is drawn at random.

The owner of a task tree (a run, a tray, a monitor) and the path of a node in it name a step for good:
`uuid5(owner, path)` is the primary key of its row and the idempotency key handed to a tool. Replay, retry
and recovery arrive at the same path, therefore at the same row.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from casework.errors import BlankIdError
from casework.values import dumps

if TYPE_CHECKING:
    from hashlib import _Hash

NAMESPACE = UUID("6f2d2f0e-5b0c-5d39-9f0a-0c5f4b7f3a11")
"""Root of the ids that have no owner: runs started under an idempotency key."""

IDEMPOTENCY_KEY_LIMIT = 255
"""Longest accepted `Idempotency-Key`, in characters."""


def derived_id(owner: UUID, path: str, kind: str = "") -> UUID:
    """The id of what `owner` has at `path`; `kind` tells apart several things at one path.

    Raises:
        BlankIdError: `path` and `kind` are both blank.
    """
    if not (path.strip() or kind.strip()):
        raise BlankIdError("path", path)
    return uuid5(owner, f"{path}#{kind}" if kind else path)


def derived_text(owner: UUID, path: str, kind: str = "") -> str:
    """As `derived_id`, as its 32 hexadecimal digits, in a quarter of the time: for who writes many of one owner's.

    Raises:
        BlankIdError: as `derived_id`.
    """
    if not (path.strip() or kind.strip()):
        raise BlankIdError("path", path)
    hashed = _hashed(owner).copy()
    hashed.update((f"{path}#{kind}" if kind else path).encode())
    digits = hashed.hexdigest()
    return f"{digits[:12]}5{digits[13:16]}{_VARIANT[digits[16]]}{digits[17:32]}"


_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""The digit that says that an id is one of RFC 9562's, with the two bits that it leaves."""


@lru_cache(maxsize=64)
def _hashed(owner: UUID) -> _Hash:
    """What the ids of one owner begin with; `uuid5` hashes it each time."""
    return hashlib.sha1(owner.bytes, usedforsecurity=False)


def step_id(run_id: UUID, path: str) -> UUID:
    """The ledger row of the step at `path`, and the idempotency key its tool receives."""
    return derived_id(run_id, path)


def event_id(run_id: UUID, path: str, kind: str) -> UUID:
    """The event of `kind` at `path`; the kind carries what makes it single, as in `attempt_lost:2`."""
    return derived_id(run_id, path, f"event:{kind}")


def message_id(run_id: UUID, path: str, position: int) -> UUID:
    """The transcript row that the step at `path` writes at `position`."""
    return derived_id(run_id, path, f"message:{position}")


def review_id(run_id: UUID, path: str) -> UUID:
    """The question to a person that the visit at `path` asks."""
    return derived_id(run_id, path, "review")


def sub_run_id(run_id: UUID, path: str) -> UUID:
    """The run that the SUBWORKFLOW at `path` starts; no step of the run has this id."""
    return derived_id(run_id, path, "run")


def decision_id(review: UUID, reviewer: str, command: str, reason: str) -> UUID:
    """The id of a decision whose caller sent none: the same answer twice is one decision."""
    return uuid5(review, dumps([reviewer, command, reason]))


def run_id_for_key(tenant: str, user: str, key: str) -> UUID:
    """The run that `user` starts under an `Idempotency-Key`; the same key is the same run.

    Raises:
        BlankIdError: one of the three is blank.
    """
    for field, value in (("tenant", tenant), ("user", user), ("Idempotency-Key", key)):
        if not value.strip():
            raise BlankIdError(field, value)
    return uuid5(NAMESPACE, dumps([tenant, user, key]))


def session_run_id(tenant: str, name: str, generation: int) -> UUID:
    """The run that generation `generation` of the WorkflowSession `name` starts."""
    return uuid5(NAMESPACE, dumps(["WorkflowSession", tenant, name, generation]))
