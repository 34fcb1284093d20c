"""The command line as a whole: help, exit codes, errors as sentences."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from casework.cli import exits
from casework.cli.root import COMMANDS, code_of_run
from casework.errors import (
    AccessError,
    CaseworkError,
    FatalError,
    FieldsError,
    LocalStackError,
    NotFoundError,
    SettingsError,
    StaleReviewError,
    StoreUnavailableError,
    UnauthenticatedError,
    UnreachableError,
)


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a stack, an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for name in ("CASEWORK_API_URL", "CASEWORK_TOKEN", "CASEWORK_DATABASE_URL", "TEMPORAL_ADDRESS"):
        monkeypatch.delenv(name, raising=False)


def test_help_is_quick() -> None:
    """`casework --help` is there in half a second; the best of three, because other work shares the machine."""
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", "casework", "--help"], capture_output=True, text=True, check=True)
        taken.append(time.perf_counter() - begun)
    assert min(taken) < 0.5
    for name in COMMANDS:
        assert f"  {name} " in done.stdout


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FieldsError("x", []), 2),
        (SettingsError("x"), 2),
        (NotFoundError("x"), 2),
        (StaleReviewError("x"), 3),
        (AccessError("x"), 4),
        (UnauthenticatedError("x"), 4),
        (UnreachableError("x"), 5),
        (StoreUnavailableError("x"), 5),
        (LocalStackError("x"), 5),
        (FatalError("x"), 1),
        (CaseworkError("x"), 1),
    ],
)
def test_every_error_has_the_exit_code_of_what_can_be_done_about_it(error: CaseworkError, code: int) -> None:
    assert exits.code_of(error) == code


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        (["runz"], 2, "Did you mean 'runs'?"),
        (["runs", "start", "loan"], 2, "-f FILE or with --input"),
        (["runs", "start", "loan", "-f", "x", "--map", "amount"], 2, "not FIELD=COLUMN"),
        (["runs", "list", "--status", "DONE"], 2, "'awaiting_review'"),
        (["runs", "list"], 2, "Start one with `casework dev`, or set CASEWORK_API_URL"),
        (["runs", "show", "seven"], 2, "No API is known here"),
        (["review", "approve"], 2, "RUN_OR_REVIEW"),
        (["migrate"], 2, "set CASEWORK_DATABASE_URL"),
        (["token", "create", "ada"], 2, "--role"),
        (["token", "create", "ada", "--role", "boss"], 2, "'reviewer'"),
    ],
)
def test_a_wrong_line_is_told_in_a_sentence(
    line: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of_run(line) == code
    captured = capsys.readouterr()
    assert told in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_a_server_that_is_not_there_is_exit_code_5(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CASEWORK_API_URL", "http://127.0.0.1:9")
    assert code_of_run(["runs", "list"]) == exits.UNREACHABLE
    assert "cannot be reached" in capsys.readouterr().err


def test_an_unknown_setting_is_refused_with_the_near_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CASEWORK_API_URI", "http://127.0.0.1:9")
    assert code_of_run(["runs", "list"]) == exits.USAGE
    assert "CASEWORK_API_URL" in capsys.readouterr().err


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    built = [name for name in COMMANDS if name not in {"dev", "demo", "drill"}]
    for name in built:
        assert code_of_run([name, "--help"]) == 0
        assert "--help" in capsys.readouterr().out
