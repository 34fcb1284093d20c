"""The page of the group talk: its commands, and what the first of them prints."""

from __future__ import annotations

import pytest

from casework.examples.group_talk import __main__ as command
from tests.docs.commands import commands
from tests.docs.outputs import fits, shown
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/how_to/hold_a_group_talk.md"
MODULE = ["python", "-m", "casework.examples.group_talk"]


def test_the_script_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """TT-24. (a) As a plain script with scripted roles."""
    block = next(block for block in blocks(PAGE) if block.language == "console")
    ((call, output),) = shown(block)
    assert call.words[:3] == MODULE
    assert command.main(call.words[3:]) == 0
    assert fits(output, capsys.readouterr().out)


def test_the_options_of_the_page_exist() -> None:
    """Each call of the module is one that its command line takes."""
    calls = [call for block in blocks(PAGE) if block.language in ("sh", "console") for call in commands(block)]
    ours = [call for call in calls if call.words[:3] == MODULE]
    assert len(ours) == 3
    assert all(command.options(call.words[3:]) for call in ours)
