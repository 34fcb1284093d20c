"""Okapi BM25: which of some texts are about the words of a question, the best first. In memory, for a folder of files.

A word that most texts have says nothing and counts nothing, in any language, unless nothing else is asked; in a handful
of texts that would be nearly every word, so there only common English words are left out (`words.asked`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from casework.examples.research.words import words_of

_SATURATION = 1.2
_LENGTH = 0.75
FEW = 20
"""Texts up to which no word is too common to count."""


def ranked(wanted: Sequence[str], texts: Mapping[str, str]) -> list[tuple[str, float]]:
    """Names and scores of the texts that have any of the wanted words; the best first, equals by name."""
    counts = {name: Counter(words_of(text)) for name, text in texts.items()}
    lengths = {name: sum(words.values()) for name, words in counts.items()}
    mean = sum(lengths.values()) / max(len(lengths), 1) or 1.0
    having = {word: sum(word in words for words in counts.values()) for word in wanted}
    telling = [word for word in wanted if len(texts) <= FEW or having[word] <= len(texts) / 2]
    weights = {word: _weight(having[word], len(texts)) for word in telling or wanted}
    scored = [
        (name, sum(weights[word] * _share(words[word], lengths[name] / mean) for word in weights))
        for name, words in counts.items()
    ]
    return sorted(((name, score) for name, score in scored if score > 0), key=lambda each: (-each[1], each[0]))


def _weight(having: int, of: int) -> float:
    return math.log(1 + (of - having + 0.5) / (having + 0.5))


def _share(count: int, length: float) -> float:
    return count * (_SATURATION + 1) / (count + _SATURATION * (1 - _LENGTH + _LENGTH * length))
