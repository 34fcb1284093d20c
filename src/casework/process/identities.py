"""Identities of what a process does, as `casework.ids` has those of runs: each follows from an owner and a path.

The owner of a Monitor's claims is the Monitor, that of a tray's steps its claim. A claim that is repeated has the same
id, so it finds the rows that bear it already; a step that is repeated has the same key.
"""

from __future__ import annotations

import re
from uuid import UUID, uuid5

from casework.ids import NAMESPACE, derived_id
from casework.values import dumps

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def monitor_owner(tenant: str, process: str) -> UUID:
    """The Monitor of a process."""
    return uuid5(NAMESPACE, dumps(["Monitor", tenant, process]))


def claim_id(monitor: UUID, poll: int, tray: int) -> UUID:
    """Claim `tray` of the Monitor's poll `poll`, both from 1: the id of the tray, and the owner of its steps."""
    return derived_id(monitor, f"poll.{poll}/tray.{tray}")


def step_key(claim: UUID, path: str, transaction: UUID) -> UUID:
    """The work on a Transaction on a visit (`Work.path`) of its tray: the same for every attempt."""
    return derived_id(claim, f"{path}/{transaction}")


def refusal_id(monitor: UUID, key: str | None, code: str, short: str) -> UUID:
    """The record of an entity that could not be taken in, or of a poll that failed: the same for each repeat.

    Without a natural key by what is said of it; ids in that are new with each attempt, and do not count.
    """
    told = None if key is not None else _ID.sub("-", short)
    return derived_id(monitor, dumps([key, code, told]), "input_error")


def agent_run_id(step: UUID, attempt: int) -> UUID:
    """The run that an agent task starts at a step. A further attempt is a new run: the first has ended, badly."""
    return derived_id(step, f"attempt.{attempt}", "run")
