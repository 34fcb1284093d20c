"""The page of the mail example: its command prints what it shows, and its table names the tasks that there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from casework.examples.email_intake.lines import processes
from casework.process.declaring import spec_of
from tests.acceptance.conftest import clean_environment
from tests.docs.outputs import fits, shown
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/how_to/take_loans_by_mail.md"


@pytest.mark.timeout(300)
def test_the_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    """BP-20, BP-25. On real servers."""
    (block,) = [block for block in blocks(PAGE) if block.language == "console"]
    ((call, output),) = shown(block)
    assert call.words[0] == "python"
    env = clean_environment(TMPDIR=str(tmp_path))
    done = subprocess.run(
        [sys.executable, *call.words[1:]], check=False, cwd=ROOT, capture_output=True, text=True, timeout=280, env=env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert fits(output, done.stdout), done.stdout


def test_the_table_names_the_tasks_that_there_are() -> None:
    """Each process with its tasks, in their order."""
    page = PAGE.read_text(encoding="utf-8")
    for process in processes():
        names = ", ".join(f"`{spec_of(task).name}`" for task in process.tasks)
        (line,) = [line for line in page.splitlines() if line.startswith(f"| `{process.name}` |")]
        assert line.endswith(f"| {names} |")
