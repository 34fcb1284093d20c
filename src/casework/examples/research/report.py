"""The report: evidence with numbers, the draft with its references, and the file that is written once."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from casework.agents import Repeat, ToolContext, tool
from casework.errors import RetryableError, ToldError
from casework.examples.research.reading import Review, Sorted
from casework.examples.research.search import Hits, LeftOut
from casework.examples.research.settings import ResearchSettings

MAX_FINDINGS = 60
"""Most findings that a writer is given."""
WEIGHTS = ("strong", "fair", "weak", "none")
_CITED = re.compile(r"\[(\d+)\]")
_UNSAFE = re.compile(r"[^\w-]+")


@dataclass(frozen=True)
class Numbered:
    """A finding as the report cites it: `[number]`."""

    number: int
    source: str
    weight: str
    path: str
    line: int
    quotation: str


@dataclass(frozen=True)
class Source:
    """How a source was weighed, and how many findings it brings."""

    source: str
    weight: str
    why: str
    findings: int


@dataclass(frozen=True)
class Evidence:
    """What a report may stand on, and what was set aside, each with the reason."""

    findings: list[Numbered] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    set_aside: list[LeftOut] = field(default_factory=list)
    more: int = 0


@dataclass(frozen=True)
class SubRun:
    """What a SUBWORKFLOW brings."""

    output: Review
    outcome: str | None = None


@dataclass(frozen=True)
class Draft:
    """What the writer wrote, citing evidence by number."""

    title: str
    text: str


@dataclass(frozen=True)
class Composed:
    """The report as it will stand in the file."""

    title: str
    markdown: str


@dataclass(frozen=True)
class Written:
    """Where the report is."""

    file: str
    bytes: int
    sha256: str


@tool(effects=False)
def number_evidence(hits: Hits, noted: Sorted, reviews: list[SubRun | None]) -> Evidence:
    """Number the findings of all sources, the stronger sources first, and list what was set aside."""
    made = [_of(each, group.source) for each, group in zip(reviews, noted.groups, strict=True)]
    made.sort(key=lambda review: WEIGHTS.index(review.weight) if review.weight in WEIGHTS else len(WEIGHTS))
    found = [(review, finding) for review in made for finding in review.findings]
    findings = [
        Numbered(number, review.source, review.weight, finding.path, finding.line, finding.quotation)
        for number, (review, finding) in enumerate(found[:MAX_FINDINGS], 1)
    ]
    aside = [*noted.set_aside, *(each for review in made for each in review.refused), *hits.left_out]
    sources = [Source(review.source, review.weight, review.why, len(review.findings)) for review in made]
    return Evidence(findings, sources, list(dict.fromkeys(aside)), len(found[MAX_FINDINGS:]))


@tool(effects=False)
def compose_report(question: str, draft: Draft, evidence: Evidence) -> Composed:
    """Put the report together: the draft, a reference for each number it cites, sources, and what was set aside."""
    cited = list(dict.fromkeys(int(number) for number in _CITED.findall(draft.text)))
    known = {finding.number: finding for finding in evidence.findings}
    if unknown := [number for number in cited if number not in known]:
        raise ToldError(f"The draft cites {unknown[0]}, which is no number of the evidence. Cite what is there.")
    if known and not cited:
        raise ToldError("The draft cites nothing. Cite the evidence by number, as in [1].")
    title = " ".join(draft.title.split()) or question
    parts = [f"# {title}", f"Question: {question}", draft.text.strip()]
    if cited:
        parts += ["## References", "\n".join(_reference(known[number]) for number in sorted(cited))]
    parts += ["## Sources", "\n".join(_listed(_source(each) for each in evidence.sources))]
    if evidence.set_aside:
        parts += ["## Set aside", "\n".join(_listed(f"`{each.path}`: {each.why}" for each in evidence.set_aside))]
    return Composed(title, "\n\n".join(parts) + "\n")


@tool(repeat=Repeat.KEYED, timeout=20)
def save_report(ctx: ToolContext, report: Composed) -> Written:
    """Write the report into the output folder, under a name that has the key of this call: so it is there once."""
    folder = ResearchSettings.load().output
    data = report.markdown.encode("utf-8", "replace")
    # The key of a call is the same at each attempt, so whoever comes second finds the file and leaves it alone.
    file = folder / f"{_slug(report.title)}-{ctx.key}.md"
    # An attempt that was thought dead may still write: each has a file of its own until it is whole.
    part = folder / f".{ctx.key}.{ctx.attempt}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            with part.open("wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            part.replace(file)
        for left in folder.glob(f".{ctx.key}.*.part"):
            with suppress(FileNotFoundError):
                left.unlink()
    except OSError as error:
        raise RetryableError(f"The report cannot be written to {folder}: {error.strerror}.") from error
    return Written(str(file.resolve()), len(data), hashlib.sha256(data).hexdigest())


def _of(sub_run: SubRun | None, source: str) -> Review:
    return sub_run.output if sub_run is not None else Review(source, "none", "its review failed")


def _reference(finding: Numbered) -> str:
    return f'{finding.number}. `{finding.path}`, line {finding.line}: "{finding.quotation}"'


def _source(source: Source) -> str:
    return f"{source.source}: {source.weight}, findings: {source.findings}. {source.why}"


def _listed(lines: Any) -> list[str]:
    return [f"- {' '.join(line.split())}" for line in lines] or ["- none"]


def _slug(title: str) -> str:
    """A title as a part of a file name: letters and digits of any script, at most 40 and 120 bytes."""
    made = _UNSAFE.sub("-", title.casefold())[:40].encode()[:120].decode("utf-8", "ignore")
    return made.strip("-_") or "report"
