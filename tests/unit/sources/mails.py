"""The mails that the standard library tests its own parser with, where they are installed."""

from __future__ import annotations

from importlib import resources

import pytest


def library_mails() -> dict[str, bytes]:
    """Each by its file's name; the test is skipped where this Python came without them."""
    try:
        folder = resources.files("test.test_email") / "data"
        found = {each.name: each.read_bytes() for each in folder.iterdir() if each.name.endswith(".txt")}
    except (ModuleNotFoundError, FileNotFoundError):
        found = {}
    if not found:
        pytest.skip("this Python has no test.test_email.data")
    return dict(sorted(found.items()))
