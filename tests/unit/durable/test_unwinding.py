"""Whether code of a run only runs because the run is dropped from memory."""

from __future__ import annotations

from casework.durable.workflows.shell import is_unwinding


def test_code_outside_any_loop_is_thrown_away() -> None:
    """A dropped run that is collected when no loop runs."""
    assert is_unwinding()


async def test_code_in_a_loop_that_is_no_workflows_is_thrown_away() -> None:
    """A dropped run that is collected while the worker's own loop runs: it must not tell or schedule anything."""
    assert is_unwinding()
