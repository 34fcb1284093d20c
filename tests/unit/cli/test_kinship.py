"""Forks of forks beside each other: where their lines part."""

from __future__ import annotations

from typing import Any

import pytest

from casework.cli.kinship import kinship, kinship_told, origins
from casework.errors import NotFoundError

FAMILY: dict[str, tuple[str, str] | None] = {
    "a": None, "b": ("a", "look.1"), "c": ("b", "ask.1"), "d": ("a", "ask.2"), "x": None, "e": ("gone", "ask.1"),
}  # fmt: skip


class Api:
    """Answers for the runs of the family."""

    def get(self, path: str) -> dict[str, Any]:
        name = path.removeprefix("/v1/runs/")
        if name not in FAMILY:
            raise NotFoundError(f"There is no run {name}.")
        origin = FAMILY[name]
        return {"run_id": name, "forked_from": origin and {"run_id": origin[0], "path": origin[1]}}


def related(left: str, right: str) -> Any:
    api: Any = Api()
    return kinship(left, right, *(origins(api, api.get(f"/v1/runs/{each}")) for each in (left, right)))


@pytest.mark.parametrize(
    ("left", "right", "found", "words"),
    [
        ("a", "b", {"fork": "right", "of": "left", "path": "look.1"}, "was forked from look.1 of the left run."),
        (
            "a", "c", {"fork": "right", "of": "left", "path": "look.1", "through": ["b"]},
            "The right run was forked from look.1 of the left run (through b).",
        ),
        ("c", "a", {"fork": "left", "of": "right", "path": "look.1", "through": ["b"]}, "The left run"),
        ("b", "d", {"fork": "both", "of": "a", "path": "look.1", "right_path": "ask.2"}, "Both are forks of run a"),
        (
            "c", "d", {"fork": "both", "of": "a", "path": "look.1", "right_path": "ask.2", "through": ["b"]},
            "Both are forks of run a: left from look.1, right from ask.2 (through b).",
        ),
    ],
)  # fmt: skip
def test_runs_of_one_line_are_told_where_they_part(left: str, right: str, found: Any, words: str) -> None:
    """AW-15. Direct forks, forks of forks, and forks of one run."""
    assert related(left, right) == found
    assert words in kinship_told(found)


def test_others_are_not_related() -> None:
    """AW-15. Nor is one whose origin was deleted, but with that origin's other forks."""
    assert related("a", "x") is None
    assert related("a", "a") is None
    assert related("e", "a") is None
