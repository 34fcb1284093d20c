"""A mailbox and a project of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from casework.sources.attachments import FolderAttachments
from tests.integration.sources.imap_server import PASSWORD, VARIABLE, ImapServer, running


@pytest.fixture
def imap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ImapServer]:
    """An IMAP server with an empty mailbox; the password is in the environment."""
    monkeypatch.setenv(VARIABLE, PASSWORD)
    with running(tmp_path) as server:
        yield server


@pytest.fixture
def kept(tmp_path: Path) -> FolderAttachments:
    """Where attachments of this test are kept."""
    return FolderAttachments(str(tmp_path / "attachments"))
