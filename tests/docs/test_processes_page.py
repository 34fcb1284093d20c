"""The page of business processes: its project is as short as it says."""

from __future__ import annotations

from casework.process.monitor_settings import read_monitors
from casework.values import loads
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/concepts/processes.md"


def test_a_project_of_its_own_is_short() -> None:
    """Two processes, three tasks and own statuses in fewer than 60 lines; that they run is shown with all blocks."""
    project = next(block for block in blocks(PAGE) if block.language == "python")
    assert project.text.count("@bot_task") == 3
    assert project.text.count("BusinessProcess(") == 2
    assert len([line for line in project.text.splitlines() if line.strip()]) < 60


def test_the_configuration_of_the_page_is_used() -> None:
    """What the page shows is read, and nothing of it ignored."""
    block = next(block for block in blocks(PAGE) if block.language == "json")
    made = read_monitors(loads(block.text))
    assert (list(made.by_class), made.ignored) == (["NewOnes"], ())
