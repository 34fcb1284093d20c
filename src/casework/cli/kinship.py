"""How two runs are related by forks: which descends from which, or both from which third run, and where they part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from casework.cli.parts_view import told
from casework.errors import NotFoundError
from casework.values import Plain

if TYPE_CHECKING:
    from casework.cli.http import Api

MOST = 50
"""How many forks of forks are followed back."""
Origin = Mapping[str, Any]
"""The run from which one was forked, and the path of the step."""


def origins(api: Api, run: Mapping[str, Any]) -> list[Origin]:
    """Where a run was forked from, and that run in turn, as far as they are there.

    Raises:
        CaseworkError: the API cannot be asked.
    """
    found: list[Origin] = []
    origin = run.get("forked_from")
    while origin and len(found) < MOST:
        found.append(origin)
        try:
            origin = api.get(f"/v1/runs/{origin['run_id']}")["forked_from"]
        except NotFoundError:  # it was deleted, and where it came from went with it
            break
    return found


def kinship(
    left: str, right: str, left_line: Sequence[Origin], right_line: Sequence[Origin]
) -> dict[str, Plain] | None:
    """Where two runs part, by their ids and their lines of origins; None where no run is of the line of both.

    `fork` is the side that descends from the run `of`, or both; `path` is where its line left that run. `through` are
    the forks between, nearest to `of` first, where there are any.
    """
    for side, line, other in (("left", left_line, right), ("right", right_line, left)):
        at = _place(line, other)
        if at is not None:
            of = "left" if side == "right" else "right"
            return {"fork": side, "of": of, "path": line[at]["path"], **_through(line, at)}
    for at, origin in enumerate(left_line):
        there = _place(right_line, str(origin["run_id"]))
        if there is not None:
            through = [*_between(left_line, at), *_between(right_line, there)]
            paths = {"path": origin["path"], "right_path": right_line[there]["path"]}
            return {"fork": "both", "of": origin["run_id"], **paths, **({"through": through} if through else {})}
    return None


def kinship_told(found: Mapping[str, Any]) -> str:
    """The same in words."""
    through = f" (through {', '.join(found['through'])})" if found.get("through") else ""
    if found["fork"] == "both":
        places = f"left from {told(found['path'])}, right from {told(found['right_path'])}"
        return f"Both are forks of run {found['of']}: {places}{through}."
    return f"The {found['fork']} run was forked from {told(found['path'])} of the {found['of']} run{through}."


def _place(line: Sequence[Origin], run_id: str) -> int | None:
    return next((at for at, origin in enumerate(line) if str(origin["run_id"]) == run_id), None)


def _between(line: Sequence[Origin], at: int) -> list[Plain]:
    return [origin["run_id"] for origin in reversed(line[:at])]


def _through(line: Sequence[Origin], at: int) -> dict[str, Plain]:
    return {"through": _between(line, at)} if at else {}
