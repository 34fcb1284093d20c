"""The parts of a storm that need no server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from casework.cli.drill_storm import CLEAR, _Line
from casework.cli.root import code_of_run
from casework.cli.supervisor import Stack
from casework.cli.telling import Teller
from casework.drills.promises import BrokenOffError, Report
from casework.drills.storm import beside
from casework.drills.storm_books import PROMISES, log_lines, promise_rows
from casework.drills.storm_cases import BLOWS, StormPlan, needed, out_of_rows, rehearsed
from casework.errors import LocalStackError
from casework.examples.loan_underwriting.rehearsal import REHEARSAL
from casework.settings import Settings
from casework.store import queries
from casework.store.books import BookFault

APP = "casework.examples.loan_underwriting:app"


def test_every_case_is_one_of_its_own() -> None:
    """No two share a key or a subject, so that the destination can tell them apart."""
    cases = rehearsed(REHEARSAL, 50)
    assert len({case.key for case in cases}) == len({case.input["applicant_id"] for case in cases}) == 50


def test_each_killed_server_has_cases_of_its_own() -> None:
    """The first part has what was asked for, and no case is in two parts."""
    plan = StormPlan(rehearsed(REHEARSAL, needed(20, 6)), side_by_side=6)
    parts = [plan.first, *(plan.struck_by(number) for number in range(len(BLOWS)))]
    assert [len(part) for part in parts] == [20, 6, 6, 6]
    assert tuple(case for part in parts for case in part) == plan.cases


def test_every_kind_of_fault_in_the_rows_breaks_one_promise() -> None:
    """A kind that no promise names would be found and not told."""
    sql = queries.load("books")["faults"].sql.decode()
    kinds = [part.split("'")[1] for part in sql.split("select ")[1:] if part.startswith("'")]
    assert sorted(kinds) == sorted(kind for _, named in PROMISES for kind in named)


def test_a_fault_in_the_rows_breaks_its_promise() -> None:
    """It is told with its run; beyond a few the others are counted."""
    report = Report("storm", "")
    promise_rows(report, [BookFault("event_hole", UUID(int=number), "9 events, the last is 10") for number in range(5)])
    broken = [promise for promise in report.promises if not promise.held]
    assert [promise.text for promise in broken] == ["Events have no hole, and none is there twice"]
    assert str(UUID(int=0)) in broken[0].found
    assert broken[0].found.endswith("and 2 more")


def test_warnings_and_tracebacks_are_counted(tmp_path: Path) -> None:
    """In the logs of the API and of all workers."""
    for name, text in (
        ("api/api.log", "2026-01-01 10:00:00,1 WARNING x: WARNING once\nTraceback (most recent call last)\n"),
        ("worker-1/worker.log", "2026-01-01 10:00:00,1 ERROR y: no\n2026-01-01 10:00:00,1 INFO y: yes\n"),
    ):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert log_lines(tmp_path) == {"warnings": 1, "errors": 1, "tracebacks": 1}


async def test_a_keeper_that_fails_ends_the_story() -> None:
    """A server that does not come up again is told at once, not after every patience is over."""
    ended = asyncio.Event()

    async def story() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def keeper() -> None:
        raise BrokenOffError("it does not come up")

    with pytest.raises(BrokenOffError, match="does not come up"):
        await beside(story(), keeper())
    assert ended.is_set()


async def test_a_case_that_fails_tells_its_own_error() -> None:
    """Not the group it was in."""

    async def case() -> None:
        raise BrokenOffError("the API refused")

    async def story() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(case())

    with pytest.raises(BrokenOffError, match="refused"):
        await beside(story())


def storm(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = code_of_run(["drill", "storm", "--app", APP, *words])
    return code, capsys.readouterr().err


def test_a_file_of_too_few_rows_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says how many the storm takes."""
    file = tmp_path / "cases.csv"
    file.write_text("applicant_id,amount,purpose\nA-1,100,car\n", encoding="utf-8")
    code, told = storm(capsys, "--inputs", str(file), "--cases", "10", "--side-by-side", "2")
    assert code == 2
    assert "has 1 rows and the storm takes 16" in told


def test_a_row_at_fault_is_refused_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A drill plays on sound inputs only."""
    file = tmp_path / "cases.jsonl"
    file.write_text('{"applicant_id": "A-1"}\nnonsense\n', encoding="utf-8")
    code, told = storm(capsys, "--inputs", str(file))
    assert code == 2
    assert "line 2: is not JSON" in told


def test_options_before_the_name_of_a_drill_are_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    """`casework drill --kills 3 storm` would play a storm without a word about the kills."""
    code = code_of_run(["drill", "--kills", "3", "storm"])
    assert code == 2
    assert "stand behind its name" in capsys.readouterr().err


def test_rows_of_a_file_keep_their_lines() -> None:
    """The key tells which row it was."""
    assert [case.key for case in out_of_rows([(2, {}), (5, {})])] == ["storm-line-2", "storm-line-5"]


def test_every_promise_about_the_rows_is_on_the_page() -> None:
    """The page of the docs says what is held against what."""
    page = (Path(__file__).parents[3] / "docs/operations/storm.md").read_text(encoding="utf-8")
    assert all(f"| {text} |" in page for text, _ in PROMISES)


@pytest.mark.parametrize("server", ["api", "postgres", "temporal", "unknown"])
def test_a_server_that_does_not_run_cannot_be_killed(tmp_path: Path, server: str) -> None:
    """It says so, instead of signalling nobody."""
    stack = Stack(tmp_path, Settings(), APP)
    with pytest.raises(LocalStackError, match="cannot be killed"):
        stack.kill_server(server)


def test_progress_on_a_terminal_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """What is said meanwhile stands on lines of its own."""
    line = _Line(Teller())
    line.show(3, 24, 8, 2)
    line.say("api was killed")
    shown, said = capsys.readouterr().out.split(CLEAR)[1:]
    assert shown == "  3 of 24 cases at rest, 8 under way, 2 workers killed"
    assert said == "   api was killed\n"
