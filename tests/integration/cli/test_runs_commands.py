"""`casework runs`, `review`, `workflows` against a served API."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from casework.cli import exits
from casework.values import loads
from tests.integration.cli.conftest import Line, Served

pytestmark = pytest.mark.usefixtures("served")

GOOD = '{"to": "Ada", "amount": 12.10}'


def waiting(line: Line) -> str:
    """A run that waits for a person."""
    run_id: str = line.json("runs", "start", "letter", "--input", GOOD)["run_id"]
    code, _, err = line("runs", "watch", run_id, "--timeout", "30")
    assert code == 0, err
    return run_id


def test_one_run_from_its_start_to_its_end(line: Line) -> None:
    """DA-31. Start, list, show, watch, review, decide, watch to the end: all over HTTP."""
    run_id = waiting(line)
    (listed,) = line.json("runs", "list")["items"]
    assert (listed["run_id"], listed["status"], str(listed["input"]["amount"])) == (run_id, "AWAITING_REVIEW", "12.10")
    code, out, _ = line("runs", "show", run_id)
    assert code == 0
    assert "waits for a person" in out
    assert "casework review decide" in out
    (item,) = line.json("review", "list")["items"]
    assert item["run_id"] == run_id

    receipt = line.json("review", "approve", run_id, "--reason", "good", "--wait", "--timeout", "20")
    assert receipt["state"] == "accepted"
    code, out, _ = line("runs", "watch", run_id, "--until", "end", "--timeout", "30")
    assert code == 0
    assert "COMPLETED, outcome approved" in out
    assert line("review", "list")[1] == "Nothing waits for a person.\n"

    code, _, err = line("review", "reject", item["review_id"], "--reason", "late")
    assert code == exits.CONFLICT
    assert "was decided approve by olga" in err
    assert line("review", "reject", run_id, "--reason", "late")[0] == exits.CONFLICT


def test_watch_prints_one_event_a_line_as_json(line: Line) -> None:
    run_id = waiting(line)
    code, out, _ = line("runs", "watch", run_id, "--json")
    assert code == 0
    events = [loads(text) for text in out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert "agent.review_pending" in {event["kind"] for event in events}


def test_watching_ends_in_time(line: Line) -> None:
    run_id = waiting(line)
    code, _, err = line("runs", "watch", run_id, "--until", "end", "--timeout", "0")
    assert code == exits.FAILED
    assert "still AWAITING_REVIEW" in err


def test_more_info_asks_again(line: Line) -> None:
    """DA-13. The short form of decide; the next question is another review."""
    run_id = waiting(line)
    first = line.json("review", "list")["items"][0]["review_id"]
    assert line("review", "more-info", run_id, "--wait", "--timeout", "20")[0] == exits.USAGE, "a reason is needed"
    assert line("review", "more-info", run_id, "--reason", "who?", "--wait", "--timeout", "20")[0] == 0
    assert line("runs", "watch", run_id, "--timeout", "30")[0] == 0
    code, _, err = line("review", "decide", first, "approve", "--reason", "x")
    assert code == exits.CONFLICT, err


def test_cancel_stops_a_run(line: Line) -> None:
    run_id = waiting(line)
    assert line.json("runs", "cancel", run_id, "--reason", "withdrawn")["state"] == "received"
    assert "is CANCELLED" in line("runs", "watch", run_id, "--until", "end", "--timeout", "30")[1]


def test_a_csv_file_starts_a_run_a_row_and_a_bad_row_does_not_stop_the_others(line: Line, folder: Path) -> None:
    """DA-7, DA-8. Each bad row is told with its line; the same file again starts nothing twice."""
    rows = "".join(f"Name {i},{i}.10,x\n" for i in range(6))
    (folder / "in.csv").write_text(f"name,sum,grade\n{rows},5,x\nBad,-1,x\nshort\n")
    arguments = ("runs", "start", "letter", "-f", "in.csv", "--map", "to=name", "--map", "amount=sum", "--json")
    code, out, err = line(*arguments)
    first = loads(out)
    assert code == exits.USAGE
    assert (first["started"], first["known"], first["failed"]) == (6, 0, 3)
    assert [row["line"] for row in first["rows"]] == list(range(2, 11))
    told = {row["line"]: row.get("error") for row in first["rows"] if row.get("error")}
    assert "input.to" in told[8]
    assert "-1 is less than 0" in told[9]
    assert told[10] == "has 1 cells, the header has 3"
    assert "Line 9: " in err
    assert "ignored (1): grade" in err

    again = loads(line(*arguments)[1])
    assert (again["started"], again["known"], again["failed"]) == (0, 6, 3)
    assert [row["run_id"] for row in again["rows"]] == [row["run_id"] for row in first["rows"]]
    anew = loads(line(*arguments, "--new", "--limit", "2", "--parallel", "1")[1])
    assert (anew["started"], len(anew["rows"])) == (2, 2)
    code, _, err = line(*arguments, "--turn-limit", "3", "--limit", "1")
    assert code == exits.CONFLICT
    assert "--new" in err


def on_terminal(command: list[str]) -> tuple[bytes, bytes]:
    """What a command writes on a terminal's stderr, and its stdout."""
    master, slave = pty.openpty()
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=slave, env={**os.environ, "TERM": "xterm"}, check=False
    )
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):
        while part := os.read(master, 65536):
            shown += part
    os.close(master)
    return shown, done.stdout


def test_on_a_terminal_a_bar_shows_the_progress_and_stdout_stays_clean(folder: Path) -> None:
    (folder / "in.jsonl").write_text('{"to": "A", "amount": 1}\n' * 3)
    command = [sys.executable, "-m", "casework", "runs", "start", "letter", "-f", "in.jsonl", "--json"]
    shown, out = on_terminal(command)
    assert b"Starting runs" in shown
    assert b"3/3" in shown
    assert loads(out)["started"] == 3


def test_rows_at_fault_stand_on_lines_of_their_own_above_the_bar(folder: Path) -> None:
    (folder / "in.jsonl").write_text('{"to": "A", "amount": 1}\n{"amount": 1}\n' * 2)
    command = [sys.executable, "-m", "casework", "runs", "start", "letter", "-f", "in.jsonl", "--json"]
    shown, _ = on_terminal(command)
    told = [text for text in re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"\r\n", shown).splitlines() if b"is required" in text]
    assert told == [b"Line 2: input.to is required.", b"Line 4: input.to is required."]


def test_an_input_may_come_from_a_pipe(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"to": "A", "amount": 1}\n{"to": "B", "amount": 2}\n'))
    )
    assert line.json("runs", "start", "letter", "-f", "-")["started"] == 2


def test_csv_may_come_from_a_pipe_too(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"name,amount\nA,1\n")))
    arguments = ("runs", "start", "letter", "-f", "-", "--map", "to=name", "--format", "csv")
    assert line.json(*arguments)["started"] == 1
    code, _, err = line(*arguments[:-2])
    assert (code, "Standard input is read as json" in err) == (exits.USAGE, True)


def test_jsonl_and_text_output(line: Line, folder: Path) -> None:
    (folder / "in.jsonl").write_text('{"to": "A", "amount": 1}\n{"to": "B", "amount": 2}\n')
    code, out, err = line("runs", "start", "letter", "-f", "in.jsonl")
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "2 started, 0 known before, 0 not started" in err


def test_what_does_not_exist_is_told(line: Line, folder: Path) -> None:
    (folder / "in.json").write_text("{}")
    code, _, err = line("runs", "start", "lettr", "-f", "in.json")
    assert (code, "There is no workflow 'lettr'" in err) == (exits.USAGE, True)
    code, _, err = line("runs", "start", "lettr", "--input", "{}")
    assert (code, "did you mean 'letter'?" in err) == (exits.USAGE, True)
    code, _, err = line("runs", "show", str(uuid4()))
    assert (code, "There is no run" in err) == (exits.USAGE, True)
    assert "GET" not in err
    code, _, err = line("review", "approve", str(uuid4()))
    assert (code, "neither a review nor a run" in err) == (exits.USAGE, True)
    assert line("runs", "show", "seven")[0] == exits.USAGE


def test_fields_at_fault_are_named_in_one_sentence(line: Line) -> None:
    code, _, err = line("runs", "start", "letter", "--input", '{"amount": "x"}')
    assert code == exits.USAGE
    assert "input.to is required" in err
    assert "input.amount 'x' is not of type number" in err
    assert err.count("input.to") == 1, "it is said once"


def test_workflows_are_listed_and_shown(line: Line) -> None:
    assert line.json("workflows", "list") == {"items": [{"name": "letter", "version": 1}]}
    code, out, _ = line("workflows", "show", "letter")
    assert code == 0
    assert "approve, reject, more_info" in out
    assert "required" in out


def test_a_token_without_the_role_is_not_allowed(line: Line, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    made = line.json("token", "create", "vera", "--role", "viewer")
    assert made["token_id"] in {row["token_id"] for row in line.json("token", "list")["items"]}
    monkeypatch.setenv("CASEWORK_TOKEN", made["token"])
    assert line("runs", "list")[0] == 0
    code, _, err = line("runs", "start", "letter", "--input", GOOD)
    assert code == exits.NOT_ALLOWED
    assert "needs the role operator" in err
    listed = line.json("token", "list")["items"]
    vera = next(row for row in listed if row["principal"] == "vera")
    assert made["token"] not in str(listed)
    assert vera["token_id"] == made["token_id"]
    assert line("token", "revoke", made["token_id"])[0] == 0
    assert line("runs", "list")[0] == exits.NOT_ALLOWED
    monkeypatch.delenv("CASEWORK_TOKEN")
    assert line("runs", "list")[0] == exits.NOT_ALLOWED
