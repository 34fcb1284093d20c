"""What a review of a manual task offers, and what is meant by the word that was chosen.

A decision on a review is one word of a closed list, with a reason. Two answers about a failed Transaction ask for
something besides: into which status to clone it, at which task to resume it. In an Error process each such status and
task is a word of its own, as in `clone-INTAKE_COMPLETED`, so that nobody can choose what there is not, or a status in
which the clone would stay for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from casework.errors import ProcessDeclarationError
from casework.process.lines import Line
from casework.process.policies import Answer, ErrorPolicy
from casework.process.remedies import clonable, resumable
from casework.process.tasks import Decision, Question

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
_ASKS = {Answer.CLONE: "into", Answer.RESUME: "at"}
"""Answers that ask for something besides, and under which name a decision's data has it."""


def offered(question: object, line: Line, policy: ErrorPolicy, lines: Iterable[Line]) -> tuple[str, ...]:
    """The words to choose from, in the order of the question's decisions.

    Of the answers about a failed Transaction those alone that the policy has put on offer.

    Raises:
        ProcessDeclarationError: the Task gave no Question, one without decisions, or one that is no usable word.
    """
    if not isinstance(question, Question):
        raise ProcessDeclarationError(f"A manual task gave {question!r:.100}. Return a Question.", field="task")
    given = tuple(lines)
    words = [word for each in question.decisions for word in _words(str(each), line, policy, given)]
    if not words:
        raise ProcessDeclarationError(
            f"The question {question.text!r:.100} has no decision to choose from. Give it at least one.", field="task"
        )
    if len(set(words)) < len(words):
        twice = next(word for word in words if words.count(word) > 1)
        raise ProcessDeclarationError(f"The decision {twice!r} is offered twice. Rename one.", field="task")
    return tuple(words)


def chosen(word: str, line: Line, *, reason: str = "", reviewer: str = "") -> Decision:
    """The decision that the word stands for."""
    for answer, name in _ASKS.items() if line.handles_errors else ():
        if word.startswith(f"{answer}-"):
            return Decision(str(answer), reason, reviewer, {name: word.removeprefix(f"{answer}-")})
    return Decision(word, reason, reviewer)


def _words(decision: str, line: Line, policy: ErrorPolicy, lines: tuple[Line, ...]) -> Iterator[str]:
    if not _WORD.fullmatch(decision):
        raise ProcessDeclarationError(
            f"The decision {decision!r:.80} is not usable: letters, digits, - and _, no digit or - first, at most 63. "
            'Write one as in "send_back"; what it means stands in the question.',
            field="task",
        )
    if not line.handles_errors:
        yield decision
    elif chosen(decision, line).data:
        raise ProcessDeclarationError(
            f"The decision {decision!r} begins as an answer of the platform does. Choose another word.", field="task"
        )
    elif decision not in tuple(Answer):
        yield decision
    elif decision in policy.answers:
        yield from _of_answer(Answer(decision), line, lines)


def _of_answer(answer: Answer, line: Line, lines: tuple[Line, ...]) -> Iterator[str]:
    match answer:
        case Answer.CLONE:
            yield from (f"{answer}-{status}" for status in clonable(line.statuses, lines))
        case Answer.RESUME:
            yield from (f"{answer}-{task}" for task in resumable(lines))
        case _:
            yield str(answer)
