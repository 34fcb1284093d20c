"""Transactions and processes on a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from casework.cli.process_view import print_transactions
from casework.cli.transaction_view import print_error

NONE: dict[str, Any] = {"items": [], "next_cursor": None}


def test_an_empty_list_says_what_was_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """A typo in a status is seen where it is told again."""
    print_transactions(NONE, {"status": "HASERROR", "clone_of": None, "limit": 20, "cursor": None})
    print_transactions(NONE, {"status": None, "limit": 20})
    assert capsys.readouterr().out == "There is no Transaction with --status HASERROR.\nThere is no Transaction.\n"


def test_an_error_has_the_place_in_the_code_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    """File and line, where the software failed."""
    error = {"process": "intake", "task": "check", "attempt": 1, "type": "APPLICATION", "code": "KeyError"}
    told = {**error, "short": "KeyError: 'amount'", "failed": "2026-12-01T16:50:43+00:00"}
    print_error({**told, "full": "KeyError: 'amount'\nat /srv/claims.py:60"})
    print_error({**told, "full": "KeyError: 'amount'"})
    first, place, second = capsys.readouterr().out.splitlines()
    assert (first, place) == (second, "       at /srv/claims.py:60")
    assert "APPLICATION KeyError at intake/check, attempt 1: KeyError: 'amount'" in first
