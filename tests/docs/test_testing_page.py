"""The page about tests of Tasks: its tests pass, in a project that is the page's files alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT, prose, write_files

PAGE = ROOT / "docs/how_to/test_a_task.md"


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    """BP-7. Without a plugin for coroutines, and without configuration."""
    write_files(PAGE, tmp_path)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "casework.testing.plugin", "-p", "no:cacheprovider"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env=alone)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout


def test_every_fixture_stands_on_the_page() -> None:
    """Those that a user asks for; the rest are parts of them."""
    import casework.testing.plugin as plugin

    named = [line.split("`")[1] for line in (plugin.__doc__ or "").splitlines() if line.startswith("`casework_")]
    assert len(named) == 6
    assert all(f"`{name}`" in prose(PAGE) for name in named)
