"""`casework process`, `transaction` and `monitor` against a served API with a worker."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from casework.app import App
from casework.cli import exits
from casework.process import ERRORS, ErrorPolicy, Schedule, bot_task
from tests.integration.api.lines import FAST, WORK, Pack, Price
from tests.integration.cli.conftest import Line, Served

pytestmark = pytest.mark.usefixtures("served")


@bot_task("price", effects=False, max_per_second=50)
class Limited(Price):
    """The same, not too fast."""


@pytest.fixture
def app() -> App:
    work = replace(
        WORK, tasks=(Limited, Pack), schedule=Schedule(every=timedelta(hours=6), offset=timedelta(minutes=30))
    )
    return App(processes=[work, ERRORS], errors=ErrorPolicy(resume=True), monitors=FAST)


def added(line: Line, folder: Path, content: str, *options: str) -> str:
    (folder / "given.json").write_text(content)
    made = line.json("transaction", "add", "--input", "given.json", *options)
    uuid: str = made["uuid"]
    return uuid


def test_a_process_from_its_start_to_the_answer_for_what_failed(
    line: Line, folder: Path, served: Served, database_dsn: str
) -> None:
    """BP-16. Put in, started with progress, looked at, tried again at a task, polled, stopped; all over HTTP."""
    import psycopg

    good, bad = (added(line, folder, content) for content in ('{"amount": 5}', "{}"))
    with psycopg.connect(database_dsn) as conn:  # as an intake would leave them
        conn.execute("update process_ops.transactions set status = 'INTAKE_COMPLETED'")
    code, out, err = line("process", "start", "work", "--watch", "--timeout", "60")
    assert code == exits.OK, err
    assert out.splitlines()[0] == "Process work is started."
    assert "1 HAS_ERROR, 1 PROCESSING_COMPLETED" in out.splitlines()[-1]
    assert "runs already" in line("process", "start", "work")[1]

    (row,) = line.json("transaction", "list", "--status", "HAS_ERROR")["items"]
    assert (row["uuid"], row["task"]) == (bad, "price")
    code, out, _ = line("transaction", "show", bad)
    assert code == exits.OK
    for words in ("is HAS_ERROR", "BUSINESS NO_AMOUNT at work/price, attempt 1", "on offer: abort, clone, resume"):
        assert words in out
    assert "work/price.1  FAILED, attempt 1" in out
    assert '"price":10' in line("transaction", "show", good)[1]

    code, out, _ = line("transaction", "retry", bad, "--at", "pack", "--data", '{"amount": 1}')
    assert (code, out) == (exits.OK, f"Transaction {bad} is INTAKE_COMPLETED.\n")
    assert "polls now" in line("monitor", "poll", "work")[1]
    code, out, err = line("process", "list", "--watch", "--timeout", "60")
    while "2 PROCESSING_COMPLETED" not in out:
        assert code == exits.OK, err
        code, out, err = line("process", "list", "--watch", "--timeout", "60")
    steps = line.json("transaction", "show", bad)["steps"]
    assert [(step["task"], step["state"]) for step in steps] == [("price", "FAILED"), ("pack", "COMPLETED")]

    assert "what is in trays goes on" in line("process", "stop", "work")[1]
    code, out, _ = line("monitor", "show", "work")
    assert (code, "ProcessingMonitor" in out, "claimed" in out) == (exits.OK, True, True)
    assert "by_row" not in out


def test_a_monitor_class_is_configured_and_cleared(line: Line) -> None:
    """BP-17. Value by value, before the file; the answer is what is in force, and where it comes from."""
    code, out, _ = line("monitor", "configure", "ProcessingMonitor", "--polling-interval", "PT3M", "--max-loops", "7")
    assert code == exits.OK
    assert out.splitlines() == [
        "Monitor ProcessingMonitor, from its next wake:",
        "  max loops         7 (row)",
        "  max running time  no limit (default)",
        "  polling interval  PT3M (row)",
        "  sleep time        PT1S (json)",
    ]
    made = line.json("monitor", "configure", "ProcessingMonitor", "--max-running-time", "PT8H")["configuration"]
    assert (made["polling_interval"], made["max_running_time"]["value"]) == (
        {"value": "PT3M", "source": "row"},
        "PT8H",
    )
    assert made == line.json("monitor", "show", "work")["configuration"]
    cleared = line.json("monitor", "configure", "ProcessingMonitor", "--clear")["configuration"]
    assert {each["source"] for name, each in cleared.items() if name != "ignored"} == {"json", "default"}


def test_a_failed_transaction_is_completed_by_hand_only_where_the_policy_says_so(
    line: Line, folder: Path, app: App, database_dsn: str
) -> None:
    """BP-26. It is off unless it is put on; named by its natural key."""
    import psycopg

    uuid = added(line, folder, '{"a": 1}', "--key", "mail-9")
    with psycopg.connect(database_dsn) as conn:
        conn.execute("update process_ops.transactions set status = 'HAS_ERROR', status_before_error = status")
    code, _, err = line("transaction", "complete", "--key", "mail-9")
    assert (code, "there are abort, clone, resume" in err) == (exits.CONFLICT, True), err
    app.errors = ErrorPolicy(complete_by_hand=True)
    code, out, err = line("transaction", "complete", "--key", "mail-9", "--data", '{"b": 2}')
    assert (code, out) == (exits.OK, f"Transaction {uuid} is COMPLETED.\n"), err
    found = line.json("transaction", "show", uuid)
    assert (found["by_hand"], found["data"], found["analytics"]["by_hand"]) == (True, {"a": 1, "b": 2}, True)
    assert uuid in line("transaction", "show", "--key", "mail-9")[1]


def test_monitors_are_listed_with_what_is_ignored(line: Line) -> None:
    """BP-13. The configuration in force with its sources; what is ignored is told, naming the field."""
    code, out, err = line("monitor", "list")
    assert code == exits.OK
    assert "polling interval PT2S (json)" in out
    assert "polling interval PT1M (default)" in out
    assert "field 'pollingIntervall'" in err
    out = line("process", "status", "work")[1]
    for words in (
        "tasks       price (plain, at most 50 a second) -> pack (plain)",
        "monitor     ProcessingMonitor: never started",
        "PT2S",
    ):
        assert words in out


def test_processes_are_scheduled_one_after_the_other(line: Line) -> None:
    """BP-31. Two processes every ten minutes start five minutes apart; then without a schedule."""
    code, out, _ = line("process", "schedule", "work", "errors", "--every", "PT10M", "--stagger")
    assert (code, out) == (exits.OK, "Process work is scheduled.\nProcess errors is scheduled.\n")
    minutes = {
        name: {each[15:19] for each in line.json("process", "status", name)["schedule"]["next_starts"]}
        for name in ("work", "errors")
    }
    assert minutes == {"work": {"0:00"}, "errors": {"5:00"}}
    assert line("process", "schedule", "work", "--half-days")[0] == exits.OK
    assert line.json("process", "schedule", "work", "errors", "--remove")["items"] == [
        {"process": "work", "state": "unscheduled"},
        {"process": "errors", "state": "unscheduled"},
    ]


def test_declared_schedules_are_brought_in_by_one_command(line: Line) -> None:
    """BP-30. Of all that declare one; another takes its place until it is brought back."""
    assert line("process", "schedule", "--declared")[1] == "Process work is scheduled.\n"
    out = line("process", "status", "work")[1]
    assert "declares    every PT6H, offset PT30M, overlap skip, catch-up PT1H" in out
    assert "schedule    as declared; next starts " in out
    assert line("process", "schedule", "work", "--every", "PT1H")[0] == exits.OK
    assert "schedule    set by an operator; next starts " in line("process", "status", "work")[1]
    assert line("process", "schedule", "work", "--declared")[0] == exits.OK
    assert "schedule    as declared; " in line("process", "status", "work")[1]
    assert line("process", "schedule", "work", "--remove")[0] == exits.OK


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("process start wrk", exits.USAGE, "Did you mean 'work'?"),
        ("process stop work", exits.CONFLICT, "does not run"),
        ("process schedule work --stagger", exits.USAGE, "--stagger goes with --every"),
        ("process schedule work --half-days --every PT1H", exits.USAGE, "--half-days says how often"),
        ("process schedule work --remove --every PT1H", exits.USAGE, "--remove takes no other option"),
        ("process schedule", exits.USAGE, "Name a process"),
        ("process schedule errors --declared", exits.USAGE, "declares no schedule"),
        ("process schedule work --declared --every PT1H", exits.USAGE, "--declared takes no other option"),
        ("process schedule work --declared --remove", exits.USAGE, "--remove takes no other option"),
        ("process schedule work", exits.USAGE, "Say when: --every DURATION"),
        ("process schedule work --every 10m", exits.USAGE, "--every is '10m': durations are ISO 8601"),
        ("process schedule work --every 10m", exits.USAGE, "Write PT10M."),
        ("process schedule work --every PT1H --jitter often", exits.USAGE, "--jitter is 'often'"),
        ("monitor configure ProcessingMonitor", exits.USAGE, "Name --polling-interval"),
        ("monitor configure ProcessingMonitor --clear --max-loops 3", exits.USAGE, "or --clear alone"),
        ("monitor configure ProcessingMonitor --sleep-time 90", exits.USAGE, "Write PT90S."),
        ("monitor configure ProcessingMonitor --sleep-time PT0S", exits.USAGE, "sleep_time is no time"),
        ("monitor configure ProcesingMonitor --max-loops 3", exits.USAGE, "Did you mean 'ProcessingMonitor'?"),
        ("transaction show seven", exits.USAGE, "ID is 'seven', which is no UUID"),
        ("transaction show", exits.USAGE, "its natural key by --key KEY"),
        ("transaction abort --key nobody", exits.USAGE, "No Transaction has the natural key 'nobody'"),
        ("transaction list --parent seven", exits.USAGE, "parent"),
        ("transaction clone 8d9f6b0e-6f0c-4c5e-9d0e-0f4a2b1c3d4e --into X", exits.USAGE, "There is no Transaction"),
        (
            "transaction retry 8d9f6b0e-6f0c-4c5e-9d0e-0f4a2b1c3d4e --at pack --data []",
            exits.USAGE,
            "--data is no JSON object",
        ),
    ],
)
def test_what_is_refused_says_why(line: Line, words: str, code: int, says: str) -> None:
    """In the words of the API, with its exit code."""
    found, _, err = line(*words.split())
    assert (found, says in err) == (code, True), err


def test_the_same_key_is_the_same_transaction(line: Line, folder: Path) -> None:
    """A second add with it changes nothing, and says so."""
    first = added(line, folder, '{"a": 1}', "--key", "mail-1", "--priority", "2")
    code, out, _ = line("transaction", "add", "--input", "given.json", "--key", "mail-1")
    assert (code, out) == (exits.OK, f"Transaction {first} was there before, in status INTAKE_IN_PROGRESS.\n")
    assert first in line("transaction", "list", "--key", "MAIL")[1]
    assert line("transaction", "list", "--status", "ABORTED")[1] == "There is no Transaction with --status ABORTED.\n"
