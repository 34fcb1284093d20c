"""The matcher of outputs: what differs from reader to reader is let through, everything else must be as it stands."""

import pytest

from tests.docs.outputs import fits, shown
from tests.docs.pages import ROOT, Block


@pytest.mark.parametrize(
    ("text", "printed", "fit"),
    [
        ("Port 127.0.0.1:1 (process 2)", "Port 127.0.0.1:99  (process 3)", True),
        ("at 2026-11-30 11:04:29Z", "at 2027-01-01 00:00:00", True),
        ("score 665", "score 666", False),
        ("a\n...\nz", "a\nb\nc\nz", True),
        ("a\n...\nz", "a\nz", True),
        ("a\nz", "a\nb\nz", False),
        ("a", "a\nb", False),
        ("says ... end", "says (anything) end", True),
        ("a.c", "abc", False),
    ],
)
def test_outputs_are_matched(text: str, printed: str, fit: bool) -> None:
    assert fits(text, printed) is fit


def test_outputs_belong_to_the_command_before_them() -> None:
    block = Block(ROOT / "x.md", 1, "console", None, "$ casework runs list\nNo runs.\n$ casework review list\n")
    assert [(call.words[1:], output) for call, output in shown(block)] == [
        (["runs", "list"], "No runs.\n"),
        (["review", "list"], ""),
    ]
