"""The scripted reader, weigher and writer: what a model would do, as pure functions of what they were given.

They know no document. They quote, weigh and write what stands in the texts that the search found, so that another
question or another folder gives another report; they only do it without understanding. A real model does it with:
`CASEWORK_MODEL=openai:gpt-4o-mini`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from casework.agents import ModelAnswer, ModelRequest, Request
from casework.examples.research.documents import columns_of, is_table, passages_of
from casework.examples.research.words import asked, overlap, words_of
from casework.values import loads

PARTS = 4
"""Parts of a document that the reader reads."""
QUOTATIONS = 2
SAYING = 6
"""Words that a sentence has at least, to be quoted."""
SUMMARY = 240
CITED = 12
"""Findings that a report cites; a shorter one cites `SHORT`."""
SHORT = 3
_FIELD = r"^{}: (.+)$"
_WITHOUT = re.compile(r"\b(?:without|leave out)\s+(?:the\s+)?(\w[\w./-]*)", re.IGNORECASE)
_SHORTER = re.compile(r"\b(?:short|shorter|brief|briefer)\b", re.IGNORECASE)


def reader(request: ModelRequest) -> ModelAnswer:
    """The next part of the document, or what was read: how relevant it is, and what it says, in its own words."""
    question, path = _said(request, "Question"), _said(request, "Document")
    results = [_read(message.content) for message in request.messages if message.role == "tool"]
    if results and "error" in results[-1] and len(results) == 1:
        return _answer({"relevance": "unreadable", "summary": str(results[0]["error"])[:SUMMARY], "quotations": []})
    parts = [result for result in results if "text" in result]
    if len(results) < min(int(parts[0]["parts"]) if parts else 1, PARTS):
        number = len(results) + 1
        return ModelAnswer(requests=(Request(f"call_{number}", "read_document", {"path": path, "part": number}),))
    return _answer(_noted(asked(question), path, "".join(part["text"] for part in parts), parts[0]["title"]))


def _noted(wanted: list[str], path: str, text: str, title: str) -> dict[str, Any]:
    columns = ", ".join(columns_of(path, text)) if is_table(path) else ""
    quotable = [each for each in passages_of(path, text) if columns or len(words_of(each)) >= SAYING]
    passages = [(overlap(wanted, f"{columns} {passage}"), passage) for passage in quotable]
    best = sorted((each for each in passages if each[0]), key=lambda each: -each[0])[:QUOTATIONS]
    enough = 2 if len(wanted) > 2 else 1
    relevance = "none" if not best else "high" if best[0][0] >= enough else "some"
    about = f"{title} ({columns})" if columns else title
    said = f"{about}: {' '.join(best[0][1].split())}" if best else about
    return {"relevance": relevance, "summary": said[:SUMMARY], "quotations": [passage for _, passage in best]}


def weigher(request: ModelRequest) -> ModelAnswer:
    """How much a source is worth: strong where a document answers, fair where one touches the question, else weak."""
    notes = loads(_said(request, "Notes"))
    claims = [{"path": note["path"], "quotation": said} for note in notes for said in note["quotations"]]
    answering = [note["path"] for note in notes if note["relevance"] == "high"]
    weight = "strong" if answering else "fair" if claims else "weak"
    best = f"; {answering[0]} most of all" if answering else ""
    why = f"{len(answering)} of {len(notes)} documents speak to the question{best}."
    return _answer({"weight": weight, "why": why[:SUMMARY], "claims": claims})


def writer(request: ModelRequest) -> ModelAnswer:
    """The report from the evidence, source by source, each sentence with its number; then anew as a person asks."""
    question = _said(request, "Question")
    evidence = loads(_said(request, "Evidence"))
    words = [message.content for message in request.messages if message.role == "user"]
    words = [said for said in words if not re.search(_FIELD.format("Evidence"), said, re.MULTILINE)]
    findings = _chosen(asked(question), evidence["findings"], words)
    return _answer({"title": question.rstrip("?!. "), "text": "\n\n".join([*_paragraphs(findings), *_heard(words)])})


def _chosen(wanted: list[str], findings: Sequence[Mapping[str, Any]], words: Sequence[str]) -> list[Mapping[str, Any]]:
    """The findings to cite, the best first: what the reviewer's words are about comes before all else."""
    unwanted = [name.rstrip(".").casefold() for said in words for name in _WITHOUT.findall(said)]
    left = [each for each in findings if not any(name in each["path"].casefold() for name in unwanted)]
    heard = [word for said in words for word in asked(said)]

    def place(each: Mapping[str, Any]) -> tuple[int, int, int]:
        return -overlap(heard, each["quotation"]), -overlap(wanted, each["quotation"]), int(each["number"])

    return sorted(left, key=place)[: SHORT if any(_SHORTER.search(said) for said in words) else CITED]


def _paragraphs(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    if not findings:
        return ["Nothing that was found and could be checked answers the question."]
    by_source: dict[str, list[str]] = {}
    for each in findings[1:]:
        by_source.setdefault(each["source"], []).append(_sentence(each))
    others = [f"From {source}:\n\n" + "\n".join(f"- {said}" for said in each) for source, each in by_source.items()]
    return [f"In short: {_sentence(findings[0])}", *others]


def _sentence(finding: Mapping[str, Any]) -> str:
    return f"{finding['quotation']} [{finding['number']}]"


def _heard(words: Sequence[str]) -> list[str]:
    return [f"Revised, as was asked: {' '.join(said.split())[:300]}" for said in words[-1:]]


def _said(request: ModelRequest, name: str) -> str:
    """What stands behind a name in the latest message of a person that has it."""
    pattern = re.compile(_FIELD.format(name), re.MULTILINE)
    found = [match[1] for each in request.messages if each.role == "user" for match in pattern.finditer(each.content)]
    return found[-1].strip() if found else ""


def _read(content: str) -> Mapping[str, Any]:
    try:
        value = loads(content)
    except ValueError:
        return {"error": content}
    return value if isinstance(value, dict) else {"error": content}


def _answer(output: dict[str, Any]) -> ModelAnswer:
    return ModelAnswer(text=str(output.get("text") or output.get("summary") or output.get("why")), output=output)
