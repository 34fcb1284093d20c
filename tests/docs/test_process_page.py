"""The page on writing a process: its project is admitted, and its tests pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT, write_files

PAGE = ROOT / "docs/how_to/write_a_process.md"


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    """BP-6, BP-7. Own statuses, a folder, a Rule that leads back, a person, a table of its own."""
    write_files(PAGE, tmp_path)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "casework.testing.plugin", "-p", "no:cacheprovider"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env=alone)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
