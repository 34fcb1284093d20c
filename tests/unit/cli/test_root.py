"""The command line as a whole: help, exit codes, errors as sentences."""

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from casework.cli import exits
from casework.cli.http import sentence
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


def processor_s() -> float:
    """Seconds that the processor has worked for children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_help_is_quick() -> None:
    """`casework --help` takes half a second of the processor; other work may share the machine."""
    taken = []
    for _ in range(3):
        begun = processor_s()
        done = subprocess.run([sys.executable, "-m", "casework", "--help"], capture_output=True, text=True, check=True)
        taken.append(processor_s() - begun)
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


def test_an_error_steers_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A message may name what others wrote, as a file's name; its lines stay lines."""
    (tmp_path / "a\x1b[31m\u202e.yaml").write_text("kind: a\n---\nkind: b\n")
    assert code_of_run(["validate", "-f", "."]) == exits.USAGE
    err = capsys.readouterr().err
    assert not {"\x1b", "\u202e"} & set(err)
    assert len(err.splitlines()) == 3


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


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://[::1", "no URL"),
        ("http://x:99999999", "no URL"),
        ("http://", "no host"),
        ("http://ada:hunter2@127.0.0.1:9", "a user name or password"),
    ],
)
def test_an_address_that_cannot_be_asked_is_told_and_not_repeated(
    url: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CASEWORK_API_URL", url)
    assert code_of_run(["runs", "list"]) == exits.USAGE
    err = capsys.readouterr().err
    assert "CASEWORK_API_URL" in err
    assert told in err
    assert "hunter2" not in err


@pytest.mark.parametrize("token", ["tökén", "hunter 2", "a\nb"])
def test_a_token_that_no_header_takes_is_told_and_not_repeated(
    token: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CASEWORK_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CASEWORK_TOKEN", token)
    assert code_of_run(["runs", "list"]) == exits.USAGE
    err = capsys.readouterr().err
    assert "CASEWORK_TOKEN" in err
    assert token not in err


@pytest.mark.parametrize(
    "command",
    [["migrate"], ["token", "list"], ["policy", "show"], ["api", "--port", "0"], ["workflows", "publish"]],
    ids=" ".join,
)
@pytest.mark.parametrize("dsn", ["postgresql://ada:hunter2/@h/x", "postgresql://[::1/x", "postgresql://h:port/x"])
def test_a_database_url_that_cannot_be_read_is_bad_input(
    command: list[str], dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CASEWORK_DATABASE_URL", dsn)
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:9")
    monkeypatch.setenv("CASEWORK_APP", "casework.examples.loan_underwriting:app")
    assert code_of_run(command) == exits.USAGE
    err = capsys.readouterr().err
    assert "The database URL in CASEWORK_DATABASE_URL" in err
    assert "hunter2" not in err


def test_a_home_that_cannot_be_made_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for command in (["dev", "--home", str(tmp_path / "file" / "home")], ["dev", "--home", "/proc/home"]):
        monkeypatch.setenv("CASEWORK_APP", "casework.examples.loan_underwriting:app")
        assert code_of_run(command) in {exits.USAGE, exits.UNREACHABLE}
        err = capsys.readouterr().err
        assert command[-1] in err
        assert "Traceback" not in err


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"detail": "No.", "errors": []}, "No."),
        ({"detail": "input: a.", "errors": [{"field": "input.to", "message": "is required"}]}, "input.to is required."),
        (
            {"detail": "'x' is no cursor.", "errors": [{"field": "c", "message": "'x' is no cursor."}]},
            "'x' is no cursor.",
        ),
        ({"errors": [{"field": f"f{i}", "message": "is bad"} for i in range(22)]}, "; and 2 more."),
        ({}, "The API refused."),
    ],
)
def test_a_refusal_is_said_once(document: dict[str, Any], told: str) -> None:
    said = sentence(document)
    assert said.endswith(told)
    assert "input: a" not in said
