"""Durations of options: what is one, and what a person is told who writes another."""

from __future__ import annotations

import pytest

from casework.cli.durations import duration
from casework.errors import InputError


def test_a_duration_is_taken_as_it_is() -> None:
    """ISO 8601."""
    assert [duration("--every", text) for text in ("PT10M", "P1DT12H", "PT0S")] == ["PT10M", "P1DT12H", "PT0S"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("10m", "Write PT10M."),
        ("90", "Write PT90S."),
        ("1h 30 min", "Write PT1H30M."),
        ("2 days", "Write P2D."),
        ("1d2h", "Write P1DT2H."),
        ("2w", "as in PT15S"),
        ("often", "as in PT15S"),
        ("", "as in PT15S"),
        ("10m!", "as in PT15S"),
        ("P1M", "as in PT15S"),
    ],
)
def test_what_is_none_is_refused_with_what_was_meant(text: str, meant: str) -> None:
    """The option, the value, and what to write."""
    with pytest.raises(InputError) as refused:
        duration("--every", text)
    assert str(refused.value).startswith(f"--every is {text!r}: durations are ISO 8601")
    assert meant in str(refused.value)
