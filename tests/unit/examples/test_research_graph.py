"""The research example as a whole, in memory: reports follow from the files, and what goes wrong stays in its place."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.local.conftest import Answers, said

from casework.agents import ModelAnswer, ModelRequest, Tool
from casework.agents.toolbox import Toolbox
from casework.examples.research import app
from casework.examples.research.settings import OUTPUT, ROOT
from casework.graph.commands import Decided
from casework.graph.state import DEFAULT_TURN_LIMIT
from casework.local.house import House, LocalEnd
from casework.local.run import run_local

Script = Callable[[ModelRequest], ModelAnswer]
NODES = ("search", "join", "anything", "read", "sort", "review", "number", "write", "compose", "publish", "save")
PUBLISH = {"publish": [said("publish")]}


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where reports go."""
    monkeypatch.delenv(ROOT, raising=False)
    monkeypatch.setenv(OUTPUT, str(tmp_path / "reports"))
    return tmp_path / "reports"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Path) -> Path:
    """An empty folder to look in, instead of the shipped corpus."""
    made = tmp_path / "root"
    made.mkdir()
    monkeypatch.setenv(ROOT, str(made))
    return made


def write(root: Path, **files: str) -> None:
    """Files by path; `__` stands for a slash, and all are Markdown."""
    for name, text in files.items():
        file = root / f"{name.replace('__', '/')}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


async def researched(
    question: str,
    decisions: Mapping[str, list[Decided]] | None = None,
    *,
    scripts: Mapping[str, Script] | None = None,
    tools: Mapping[str, Tool] | None = None,
    **given: Any,
) -> LocalEnd:
    """One run to its end, with other scripts or tools in place of the shipped ones."""
    used = {**app.scripts, **(scripts or {})}
    house = House(
        Answers(decisions or {"publish": [said("publish")]}),
        lambda agent, _providers: used[agent.name],
        Toolbox((tools or {}).get(each.name, each) for each in app.tools),
        turn_limit=DEFAULT_TURN_LIMIT,
    )
    return await run_local(house, app.workflow("research"), {"question": question, **given})


def report(out: Path) -> str:
    (file,) = files(out)
    return file.read_text()


def files(out: Path) -> list[Path]:
    return list(out.glob("*"))


def visits(end: LocalEnd) -> list[str]:
    return [step.path for step in end.trace if "/" not in step.path]


async def test_the_shipped_corpus_answers_its_question(out: Path) -> None:
    """AW-4. PARALLEL searches, MAP over documents, a sub-workflow for each source, a person, and the file."""
    end = await researched("Why was the bridge closed, and what does the repair cost?")
    assert (end.status, end.outcome) == ("COMPLETED", "published")
    assert visits(end) == [f"{node}.1" for node in NODES]
    assert [step.path for step in end.trace[:3]] == [f"search.1/{name}.1" for name in ("texts", "headings", "tables")]
    assert sorted(end.subs) == ["review.1/source.1", "review.1/source.2", "review.1/source.3"]
    text = report(out)
    assert "the deck has cracked above the east pier" in text
    assert set(re.findall(r"^\d+\. `(\w+)/", text, re.MULTILINE)) == {"notes", "minutes", "figures"}
    assert "birds-on-the-river" not in text
    assert end.output["file"] == str(files(out)[0])


async def test_another_question_gives_another_report(out: Path) -> None:
    await researched("How many people does the ferry carry?")
    text = report(out)
    assert "the ferry carries about four hundred people on a market day" in text
    assert "bearings" not in text


async def test_a_question_in_another_script_is_answered_in_its_own(out: Path) -> None:
    await researched("橋の納期が遅れる理由は何ですか")
    assert "納期が遅れる理由は鋼材の不足です。 [1]" in report(out)


async def test_another_folder_gives_another_report(root: Path, out: Path) -> None:
    """A folder below the root, and nothing of the rest."""
    write(root, one__a="The lamp was lit by the keeper in the evening.", two__b="The lamp was lit by nobody at all.")
    await researched("Who lit the lamp?", folder="one")
    assert "by the keeper in the evening" in report(out)
    assert "nobody" not in report(out)


async def test_where_nothing_is_found_a_person_is_asked(root: Path, out: Path) -> None:
    """The words of the person are searched for instead, and the run may end without a report."""
    write(root, a="The lighthouse was lit by the keeper in the evening.")
    end = await researched("zeppelin", {"nothing": [said("ask_again", "airship"), said("close")]})
    assert (end.status, end.outcome) == ("COMPLETED", "nothing_found")
    assert not files(out)
    answers = {"nothing": [said("ask_again", "lighthouse")], **PUBLISH}
    end = await researched("zeppelin", answers)
    assert end.outcome == "published"
    assert report(out).startswith("# lighthouse\n")


async def test_an_empty_folder_and_none_at_all(root: Path) -> None:
    end = await researched("anything", {"nothing": [said("close")]})
    assert end.outcome == "nothing_found"
    end = await researched("anything", folder="none")
    assert (end.status, (end.reason or "").count("'none' cannot be read: No such file or directory")) == ("FAILED", 3)


async def test_a_reviewers_words_change_the_report(out: Path) -> None:
    """Back to the writer with the words; nothing is read again, and only the last version is written."""
    words = "Shorter, and without the figures; what of the council?"
    end = await researched(
        "Why was the bridge closed, and what does the repair cost?",
        {"publish": [said("revise", words), said("publish")]},
    )
    assert visits(end)[-5:] == ["publish.1", "write.2", "compose.2", "publish.2", "save.1"]
    assert visits(end).count("read.1") == 1
    text = report(out)
    assert "In short: The council decided to close the bridge" in text
    assert "figures/" not in text.partition("## Sources")[0]
    assert len(re.findall(r"\[\d+\]", text)) == 3
    assert f"Revised, as was asked: {words}" in text


async def test_a_dropped_report_is_not_written(out: Path) -> None:
    end = await researched("What of the ferry?", {"publish": [said("drop")]})
    assert (end.outcome, files(out)) == ("dropped", [])


async def test_a_file_that_is_gone_when_it_is_read_is_set_aside(root: Path, out: Path) -> None:
    """Between search and reading; and what vanishes before the check is refused."""
    write(
        root, n__a="The lamp was lit by the keeper.", n__b="The lamp was lit with oil.", m__c="The lamp was lit at six."
    )
    join, check = app.toolbox.get("join_hits"), app.toolbox.get("check_quotations")

    def joins(*args: Any, **given: Any) -> Any:
        (root / "n/b.md").unlink()
        return join(*args, **given)

    def checks(*args: Any, **given: Any) -> Any:
        (root / "m/c.md").unlink(missing_ok=True)
        return check(*args, **given)

    tools = {"join_hits": replace(join, function=joins), "check_quotations": replace(check, function=checks)}
    end = await researched("Who lit the lamp?", tools=tools)
    assert end.status == "COMPLETED"
    text, _, aside = report(out).partition("## Set aside")
    assert "by the keeper" in text
    assert "- `n/b.md`: 'n/b.md' cannot be read: No such file or directory." in aside
    assert (
        "- `m/c.md`: 'm/c.md' cannot be read: No such file or directory. quoted was 'The lamp was lit at six.'" in aside
    )
    assert "at six" not in text


async def test_a_quotation_that_was_made_up_does_not_reach_the_report(root: Path, out: Path) -> None:
    write(root, n__a="The lamp was lit by the keeper.")

    def invents(request: ModelRequest) -> ModelAnswer:
        answer: ModelAnswer = app.scripts["weigher"](request)
        assert isinstance(answer.output, dict)
        claims = [*answer.output["claims"], {"path": "n/a.md", "quotation": "The lamp was stolen."}]
        return replace(answer, output={**answer.output, "claims": claims})

    await researched("Who lit the lamp?", scripts={"weigher": invents})
    text, _, aside = report(out).partition("## Set aside")
    assert "by the keeper" in text
    assert "stolen" not in text
    assert "this does not stand there; quoted was 'The lamp was stolen.'" in aside


def cut_off(agent: str, word: str) -> Callable[[ModelRequest], ModelAnswer]:
    """The agent's script, save that a request with that word in it has no line."""

    def asked(request: ModelRequest) -> ModelAnswer:
        if word in request.messages[0].content:
            raise ConnectionError("no line")
        answer: ModelAnswer = app.scripts[agent](request)
        return answer

    return asked


async def test_a_source_whose_review_fails_sets_itself_aside(root: Path, out: Path) -> None:
    """AW-8. The failure is caught in the source's own run; the report has the others, and says why one is missing."""
    write(root, good__a="The lamp was lit by the keeper.", bad__b="The lamp was lit by a ghost.")
    end = await researched("Who lit the lamp?", scripts={"weigher": cut_off("weigher", "Source: bad")})
    assert [sub.status for sub in end.subs.values()] == ["COMPLETED", "COMPLETED"]
    assert "by the keeper" in report(out)
    assert "ghost" not in report(out)
    assert re.search(r"- bad: none, findings: 0. could not be reviewed: .*no line", report(out))


async def test_a_reader_that_fails_costs_its_document_alone(root: Path, out: Path) -> None:
    """AW-8. The MAP fails, its onError edge keeps what the other branches brought, and the report names the one."""
    write(root, n__a="The lamp was lit by the keeper.", n__b="The lamp was lit by a ghost.")
    end = await researched("Who lit the lamp?", scripts={"reader": cut_off("reader", "Document: n/b.md")})
    assert (end.status, end.outcome) == ("COMPLETED", "published")
    assert "by the keeper" in report(out)
    assert "- `n/b.md`: it could not be read: the reader failed" in report(out)


async def test_a_writer_that_cites_what_is_not_there_writes_anew(root: Path, out: Path) -> None:
    """It is told why; a writer that never learns ends the run at the turn limit, and nothing is published."""
    write(root, n__a="The lamp was lit by the keeper.")

    def learns(request: ModelRequest) -> ModelAnswer:
        answer: ModelAnswer = app.scripts["writer"](request)
        if "Your last draft was refused: The draft cites 9" in request.messages[-1].content:
            return answer
        assert isinstance(answer.output, dict)
        return replace(answer, output={**answer.output, "text": "By whom, I know not [9]."})

    end = await researched("Who lit the lamp?", scripts={"writer": learns})
    assert "write.2" in visits(end)
    assert end.outcome == "published"
    assert "[9]" not in report(out)

    def never(request: ModelRequest) -> ModelAnswer:
        return ModelAnswer("no", output={"title": "t", "text": "[9]"})

    end = await researched("Who lit the lamp?", scripts={"writer": never})
    assert end.status == "FAILED"
    assert "turn limit" in (end.reason or "")
    assert len(files(out)) == 1


async def test_a_long_document_is_read_to_its_end(root: Path, out: Path) -> None:
    write(root, a="Nothing of it stands here.\n" * 500 + "The lamp was lit by the keeper.\n")
    await researched("Who lit the lamp?")
    assert "`a.md`, line 501:" in report(out)


async def test_two_hundred_documents_at_most_four_at_a_time(root: Path, out: Path) -> None:
    """AW-4. All are read, no more side by side than `maxParallel` says; the report cites a few."""
    write(
        root,
        **{f"s{number % 7}__{number:03}": f"The lamp {number} was lit by keeper {number}." for number in range(201)},
    )
    reads, under_way, most = 0, 0, 0
    read = app.toolbox.get("read_document")

    async def counts(*args: Any, **given: Any) -> Any:
        nonlocal reads, under_way, most
        reads, under_way = reads + 1, under_way + 1
        most = max(most, under_way)
        try:
            await asyncio.sleep(0)
            return read(*args, **given)
        finally:
            under_way -= 1

    end = await researched("Who lit the lamp?", tools={"read_document": replace(read, function=counts)}, limit=200)
    assert (end.status, reads) == ("COMPLETED", 200)
    assert 1 <= most <= 4
    assert len(end.subs) == 7
    assert len(re.findall(r"^\d+\. `s\d/", report(out), re.MULTILINE)) == 12
