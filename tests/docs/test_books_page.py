"""The page of operations tells every fault that the audit of business processes can find."""

from __future__ import annotations

import re

from casework.store.processes.audit_checks import CHECKS, LEFT_BEHIND
from tests.docs.pages import ROOT

PAGE = ROOT / "docs/operations/processes.md"


def test_every_fault_of_the_books_stands_in_the_table() -> None:
    """In the order in which they are told, and no other; how many checks there are is right."""
    text = PAGE.read_text()
    section = text[text.index("## Books of Transactions") : text.index("## Roles")]
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", section, re.MULTILINE)
    assert rows == ["fault", "---", *(check.fault for check in CHECKS), LEFT_BEHIND.fault]
    assert f"The books balance: {len(CHECKS)} checks." in section
