"""Identities of what a process does, as `casework.ids` has those of runs: each follows from an owner and a path.

The owner of a Monitor's claims is the Monitor, that of a tray's steps its claim. A claim that is repeated has the same
id, so it finds the rows that bear it already; a step that is repeated has the same key.
"""

from __future__ import annotations

from uuid import UUID, uuid5

from casework.ids import NAMESPACE, derived_id
from casework.values import dumps


def monitor_owner(tenant: str, process: str) -> UUID:
    """The Monitor of a process."""
    return uuid5(NAMESPACE, dumps(["Monitor", tenant, process]))


def claim_id(monitor: UUID, poll: int, tray: int) -> UUID:
    """Claim `tray` of the Monitor's poll `poll`, both from 1: the id of the tray, and the owner of its steps."""
    return derived_id(monitor, f"poll.{poll}/tray.{tray}")


def step_key(claim: UUID, path: str, transaction: UUID) -> UUID:
    """The work on a Transaction on a visit (`Work.path`) of its tray: the same for every attempt."""
    return derived_id(claim, f"{path}/{transaction}")


def agent_run_id(step: UUID, attempt: int) -> UUID:
    """The run that an agent task starts at a step. A further attempt is a new run: the first has ended, badly."""
    return derived_id(step, f"attempt.{attempt}", "run")
