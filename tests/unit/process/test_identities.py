"""Identities: what is repeated has the same, and no two things share one."""

from __future__ import annotations

from uuid import UUID

from casework.process.identities import agent_run_id, claim_id, monitor_owner, step_key

ONE, TWO = UUID(int=1), UUID(int=2)


def test_a_repeated_claim_and_step_are_the_same() -> None:
    """The same poll, tray, path and Transaction give the same ids, whatever process computes them."""
    owner = monitor_owner("default", "processing")
    assert owner == monitor_owner("default", "processing")
    claim = claim_id(owner, 3, 1)
    assert claim == claim_id(owner, 3, 1)
    assert step_key(claim, "check.1", ONE) == step_key(claim, "check.1", ONE)


def test_no_two_things_share_an_id() -> None:
    """Tenants, processes, polls, trays, visits, Transactions and attempts are told apart; a run is no step."""
    owners = {monitor_owner(tenant, name) for tenant in "ab" for name in "ab"}
    claims = {claim_id(owner, poll, tray) for owner in owners for poll in (1, 11) for tray in (1, 11)}
    steps = {step_key(claim, path, each) for claim in claims for path in ("a.1", "a.2", "b.1") for each in (ONE, TWO)}
    runs = {agent_run_id(step, attempt) for step in steps for attempt in (1, 2)}
    assert (len(owners), len(claims), len(steps), len(runs)) == (4, 16, 96, 192)
    assert len(owners | claims | steps | runs) == 308
