"""What cannot be a name, an id or data, given to the commands of processes: refused in words, and never shown raw."""

from __future__ import annotations

from pathlib import Path

import pytest

from casework.app import App
from casework.cli import exits
from casework.process import ERRORS, ErrorPolicy
from tests.integration.api.lines import FAST, WORK
from tests.integration.cli.conftest import Line

pytestmark = pytest.mark.usefixtures("served")

UUID = "8d9f6b0e-6f0c-4c5e-9d0e-0f4a2b1c3d4e"
ODD = (
    "\x1b[2J",
    "a\nb",
    "../../v1/runs",
    "a/b?c=d#e",
    "%2e%2e",
    "\u202egnp",
    "ü" * 600,
    "\udcff",
    "",
    " ",
    "--",
    "'; drop",
)
"""Control characters, ways out of a path, bidi marks, lengths, bytes that are no text, blanks, SQL."""
NAMED = (
    ("process", "status"),
    ("process", "start"),
    ("process", "stop"),
    ("process", "schedule", "--every", "PT1H"),
    ("process", "schedule", "--remove"),
    ("monitor", "show"),
    ("monitor", "stop"),
    ("monitor", "poll"),
    ("transaction", "show"),
    ("transaction", "abort"),
    ("transaction", "clone", "--into", "INTAKE_COMPLETED"),
    ("transaction", "retry", "--at", "pack"),
)


@pytest.fixture
def app() -> App:
    return App(processes=[WORK, ERRORS], errors=ErrorPolicy(resume=True), monitors=FAST)


def refused(line: Line, *words: str) -> str:
    """What is said; it is an error of whoever asked, told in few lines that a terminal may show."""
    code, out, err = line(*words)
    assert (code, out) == (exits.USAGE, ""), (words, code, out, err)
    assert "Traceback" not in err
    assert err.strip()
    assert len(err) < 2_000
    assert not [each for each in err if each != "\n" and not each.isprintable()], repr(err)
    return err


def test_what_is_no_name_is_refused(line: Line) -> None:
    """Each command that takes a name or an id."""
    for command in NAMED:
        for odd in ODD:
            refused(line, *command, "--", odd)


VALUES = (
    ("transaction", "clone", UUID, "--into"),
    ("transaction", "retry", UUID, "--at"),
    ("transaction", "list", "--claim"),
    ("transaction", "list", "--parent"),
    ("transaction", "list", "--cursor"),
    ("transaction", "list", "--limit"),
    ("process", "schedule", "work", "--every"),
    ("process", "schedule", "work", "--zone", "UTC", "--cron"),
    ("process", "schedule", "work", "--cron", "@daily", "--zone"),
    ("process", "schedule", "work", "--every", "PT1H", "--jitter"),
    ("process", "schedule", "work", "--every", "PT1H", "--overlap"),
    ("process", "list", "--timeout"),
)


def test_what_is_no_value_of_an_option_is_refused(line: Line) -> None:
    """Ids, cursors, numbers, durations, zones and policies."""
    for words in VALUES:
        for odd in ODD:
            if odd or words[-1] != "--cursor":  # without one it is the first page
                refused(line, *words[:-1], f"{words[-1]}={odd}")


NO_DATA = (
    ("[]", "is no JSON object"),
    ("{", "is not JSON"),
    ('{"a": NaN}', "NaN"),
    ('{"a": 1, "a": 2}', "'a'"),
    ('{"a": ' * 3_000 + "1" + "}" * 3_000, "deep"),
    ("[" * 100_000, "--data"),
    ("\x1b[2J", "is not JSON"),
)


def test_what_is_no_data_is_refused(line: Line, folder: Path) -> None:
    """On the command line and in a file: JSON with one object, each name once, finite and shallow."""
    for data, says in NO_DATA:
        assert says in refused(line, "transaction", "retry", UUID, "--at", "pack", "--data", data)
        (folder / "given.json").write_text(data)
        refused(line, "transaction", "add", "--input", "given.json")


def test_text_that_cannot_be_kept_or_shown_is_neither(line: Line, folder: Path) -> None:
    """NUL and half characters are kept as their marks; control characters of data are not shown raw, and
    refused in a key."""
    (folder / "given.json").write_text(r'{"a": "x\u0000y\ud800", "\u001b[2J": "\u202e"}')
    code, out, err = line("transaction", "add", "--input", "given.json", "--key", "mail-1")
    assert code == exits.OK, err
    uuid = out.split()[1]
    assert "control characters" in refused(line, "transaction", "add", "--input", "given.json", "--key", "\x1b]0;a")
    for words in (("show", uuid), ("list",)):
        code, out, err = line("transaction", *words)
        assert code == exits.OK, err
        assert not [each for each in out if each != "\n" and not each.isprintable()], repr(out)
    assert line.json("transaction", "show", uuid)["data"] == {"a": "x\u2400y\ufffd", "\x1b[2J": "\u202e"}
