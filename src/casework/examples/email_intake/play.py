"""The play: sample mails go their way on real servers, a scripted reviewer answers, and all is checked at the end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from casework.drills.promises import Report
from casework.examples.email_intake.documents import pdf_text
from casework.examples.email_intake.watching import ENDED, Desk, Row, until

PROCESSES = ("intake", "processing", "submission", "errors")
SAMPLES = Path(__file__).parent / "mails"


def says(review: Row) -> str:
    """The scripted reviewer: follows policy, lets a contradiction go on with the first attachment, aborts the rest."""
    offered, told = review["decisions"], str(review["recommendation"])
    if "approve" in offered:
        declined = (review["recommendation"] or {}).get("recommendation") == "decline"
        return "reject" if declined else "approve"
    return "clone-INTAKE_COMPLETED" if "CONTRADICTION" in told else "abort"


async def play(desk: Desk, report: Report, mails: Path, letters: Path) -> list[Row]:
    """Start the processes, answer until every Transaction has ended, check; gives the Transactions in full.

    Raises:
        BrokenOffError: they do not end in time.
    """
    there = _mails(mails)
    for name in PROCESSES:
        await desk.post(f"/v1/processes/{name}/start")
    report.tell(f"{there} mails lie in the folder; the processes {', '.join(PROCESSES)} are started.")
    asked: list[tuple[Row, str]] = []

    async def through() -> bool:
        for review, word in await desk.answer(says):
            asked.append((review, word))
            report.tell(f"The scripted reviewer says {word} to {_question(review)}")
        rows = await desk.transactions()
        return not _mails(mails) and bool(rows) and all(row["status"] in ENDED for row in rows)

    await until(through, "every mail is taken and every Transaction has ended")
    rows = [await desk.get(f"/v1/transactions/{row['uuid']}") for row in await desk.transactions()]
    for row in rows:
        report.tell(way(row))
    rounds = (await desk.get("/v1/monitors/intake"))["newest_rounds"]
    _taken(report, there, rows, rounds)
    _ends(report, rows)
    _letters(report, [row for row in rows if row["status"] == "COMPLETED"], letters)
    report.counts.update(mails=there, transactions=len(rows), decisions=len(asked), **_statuses(rows))
    return rows


def way(row: Row) -> str:
    """The stages of a Transaction, with its errors, in a line."""
    stages = " > ".join([str(stage["after"]) for stage in row["stages"]])
    errors = "".join(f"; {error['code']}: {error['short']}" for error in row["errors"])
    repaired = f"; {row['data']['repaired']}" if row["data"].get("repaired") else ""
    return (
        f"{row['data'].get('file', row['uuid'])}{' (clone)' if row['cloned_from'] else ''}: {stages}{errors}{repaired}"
    )


def _mails(folder: Path) -> int:
    return len(list(folder.glob("*.eml")))


def _question(review: Row) -> str:
    told = review["recommendation"]
    if isinstance(told, dict) and "recommendation" in told:
        return f"a loan for which the agent recommends: {told['recommendation']}"
    lines = [line for line in str(told).replace("\\n", "\n").splitlines() if line.startswith("Error type")]
    return f"what failed: {lines[0] if lines else told}"


def _taken(report: Report, there: int, rows: list[Row], rounds: list[Row]) -> None:
    made = [row for row in rows if row["natural_key"]]
    counts = {name: sum(each[name] for each in rounds) for name in ("taken_in", "repeated", "bad")}
    report.promise(
        "Every mail is a Transaction, or known to be the same as one",
        counts["taken_in"] == len(made) and sum(counts.values()) == there and counts["bad"] == 0,
        f"{there} mails: {counts['taken_in']} taken in, {counts['repeated']} sent twice, {counts['bad']} bad",
    )
    keys = Counter(row["natural_key"] for row in made)
    report.promise("The mail that came twice is one Transaction", max(keys.values()) == 1, f"{len(keys)} Message-IDs")


def _ends(report: Report, rows: list[Row]) -> None:
    aborted = [row for row in rows if row["status"] == "ABORTED"]
    explained = [row for row in aborted if row["errors"] and (row["clones"] or not row["straight_through"])]
    report.promise(
        "What was aborted has its error, and a clone or a person's word",
        aborted == explained,
        ", ".join(sorted(row["errors"][-1]["code"] for row in aborted if row["errors"])),
    )
    mended = [row for row in rows if row["data"].get("repaired") and row["status"] == "COMPLETED"]
    held = [(row["data"]["application"]["amount"], row["straight_through"]) for row in mended]
    report.promise(
        "The amount in euros was repaired without a person",
        held == [(27500, True)],
        ", ".join(f"{amount} dollars" for amount, _ in held),
    )
    outcomes = [
        run["status"] == "COMPLETED" and bool(row["data"]["decision"]["outcome"])
        for row in rows
        if row["status"] == "COMPLETED"
        for run in row["runs"]
        if run["task"] == "underwrite"
    ]
    completed = sum(row["status"] == "COMPLETED" for row in rows)
    decided = len(outcomes) == completed and all(outcomes)
    report.promise(
        "Every completed Transaction has a decided run",
        decided,
        f"{completed} runs",
    )


def _letters(report: Report, rows: list[Row], folder: Path) -> None:
    wrong = [row["uuid"] for row in rows if not _fits(row, folder)]
    report.promise("Every decision has a letter that says it", bool(rows) and not wrong, f"{len(rows)} letters")
    numbers = sorted((row["data"]["letter"]["day"], row["data"]["letter"]["number"]) for row in rows)
    report.promise("No two letters of a day have one number", len(set(numbers)) == len(rows), f"{len(numbers)} numbers")
    days = sorted({day for day, _ in numbers})
    told = "\n".join(pdf_text("report.pdf", (folder / day / "report.pdf").read_bytes()) for day in days)
    once = [row["uuid"] for row in rows if told.count(row["uuid"]) == 1]
    report.promise("The day's report has every letter once", len(once) == len(rows), f"{len(once)} of {len(rows)}")


def _fits(row: Row, folder: Path) -> bool:
    """Whether the letter says whose application was decided how."""
    data: Any = row["data"]
    file = folder / data["letter"]["file"]
    if not file.exists():
        return False
    text = pdf_text(file.name, file.read_bytes())
    wanted = (row["uuid"], data["application"]["applicant_id"], data["decision"]["outcome"])
    return all(each in text for each in wanted)


def _statuses(rows: list[Row]) -> dict[str, int]:
    return {status.lower(): count for status, count in Counter(row["status"] for row in rows).items()}
