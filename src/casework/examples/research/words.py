"""Words of any script, for searching: folded, without endings that only count, pairs of characters where none are."""

from __future__ import annotations

import re
import unicodedata

_PLURAL = re.compile(r"^[a-z]{3,}[^su]s$")
_COMMON = frozenset(
    """
    a about after all also an and any are as at be because been before but by can could did do does for from had has
    have he her his how if in into is it its many may me more most much must my no nor not of on one only or other our
    out over shall she should so some such than that the their them then there these they this those to up was we were
    what when where which while who whom whose why will with would you your
    """.split()  # noqa: SIM905 - a paragraph is easier to read than a list
)
"""English words that say nothing of a subject. In other languages their frequency tells."""
# Scripts that write no blanks between words: Thai to Myanmar, Khmer, kana, Han.
_UNSPACED = (
    ("\u0e00", "\u109f"),
    ("\u1780", "\u17ff"),
    ("\u3040", "\u30ff"),
    ("\u3400", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0003ffff"),
)


def words_of(text: str) -> list[str]:
    """The words of a text in their order, as they are compared."""
    found: list[str] = []
    run = ""
    for character in f"{unicodedata.normalize('NFKC', text).casefold()} ":
        if unicodedata.category(character)[0] in "LMN":
            if run and _unspaced(run[-1]) != _unspaced(character):
                found += _of_run(run)
                run = ""
            run += character
        elif run:
            found += _of_run(run)
            run = ""
    return found


def asked(question: str) -> list[str]:
    """The words that a question is about, each once; all of them where nothing but common ones are there."""
    found = list(dict.fromkeys(words_of(question)))
    return [word for word in found if word not in _COMMON] or found


def overlap(wanted: list[str], text: str) -> int:
    """How many of the wanted words are in the text."""
    return len(set(wanted) & set(words_of(text)))


def _of_run(run: str) -> list[str]:
    if _unspaced(run[0]):
        return [run[at : at + 2] for at in range(max(len(run) - 1, 1))]
    return [run[:-1] if _PLURAL.match(run) else run]


def _unspaced(character: str) -> bool:
    return any(first <= character <= last for first, last in _UNSPACED)
