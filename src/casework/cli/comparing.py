"""Two runs side by side: their facts, input, outputs and steps, matched by name and path.

Here: asking the API for both, the comparison as a plain value, and its print. Steps of one path are one step in both,
since a path says where in its run a step stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from casework.cli.kinship import Origin, kinship, kinship_told, origins
from casework.cli.output import cell, table
from casework.cli.parts_view import told
from casework.values import Plain, dumps

if TYPE_CHECKING:
    from casework.cli.http import Api

PAGE = 200
WIDTH = 60
"""Longest value of a side in the print, in characters; `--json` has all of it."""
FACTS = ("workflow", "workflow_version", "status", "outcome", "failure", "user", "model", "turn", "loop_count",
         "tokens_in", "tokens_out", "cost", "duration_ms")  # fmt: skip
"""What is told of each run by itself; `duration_ms` from its start to its end, null while it is open."""
_STEP = ("name", "kind", "state", "attempt", "result", "error", "latency_ms")
_SAYS = ("name", "kind", "state", "arguments", "result", "error")
"""What makes two steps the same; time, tokens and the number of attempts do not."""
_SIDES = ("left", "right")


def compared(api: Api, left: str, right: str) -> dict[str, Plain]:
    """The comparison of two runs by their ids.

    Raises:
        CaseworkError: there is no such run, or the API cannot be asked.
    """
    details = [api.get(f"/v1/runs/{run_id}") for run_id in (left, right)]
    steps = [list(_all_steps(api, run_id)) for run_id in (left, right)]
    return comparison(*details, *steps, lines=[origins(api, each) for each in details])


def _all_steps(api: Api, run_id: str) -> Iterator[Any]:
    cursor = None
    while True:
        page = api.get(f"/v1/runs/{run_id}/steps", limit=PAGE, cursor=cursor)
        yield from page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return


def comparison(
    left: Mapping[str, Any],
    right: Mapping[str, Any],
    left_steps: Sequence[Any],
    right_steps: Sequence[Any],
    *,
    lines: Sequence[Sequence[Origin]] = ((), ()),
) -> dict[str, Plain]:
    """Details, steps and lines of origins of two runs, side by side.

    `facts`, `input` and `context` are lists of `key`, `same`, `left` and `right`; a side that lacks the key has no
    member. `forked` says where they part, if one descends from the other or both from a third. `steps` are the same by
    `path`, in the order of the left run, with those of the right alone where they came.
    """
    return {
        "left": left["run_id"],
        "right": right["run_id"],
        "forked": kinship(str(left["run_id"]), str(right["run_id"]), *lines),
        "facts": _pairs(_facts(left), _facts(right), FACTS),
        "input": _pairs(left["input"], right["input"]),
        "context": _pairs(left["context"], right["context"]),
        "steps": _steps(left_steps, right_steps),
    }


def _facts(run: Mapping[str, Any]) -> dict[str, Any]:
    return {**run, "duration_ms": _duration_ms(run["created_at"], run["ended_at"])}


def _duration_ms(begin: str, end: str | None) -> int | None:
    if end is None:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)) // timedelta(milliseconds=1)


def _pairs(left: Mapping[str, Any], right: Mapping[str, Any], keys: Sequence[str] = ()) -> list[Plain]:
    made: list[Plain] = []
    for key in keys or sorted({*left, *right}):
        sides = {side: one[key] for side, one in zip(_SIDES, (left, right), strict=True) if key in one}
        made.append({"key": key, "same": _same(sides), **sides})
    return made


def _same(sides: Mapping[str, Any]) -> bool:
    """Whether both are there and of one canonical JSON: `true` is not 1, and 1.0 is not 1."""
    return len(sides) == len(_SIDES) and dumps(sides["left"]) == dumps(sides["right"])


def _steps(left: Sequence[Any], right: Sequence[Any]) -> list[Plain]:
    by_side = [{step["path"]: step for step in steps} for steps in (left, right)]
    made: list[Plain] = []
    for path in _order([step["path"] for step in left], [step["path"] for step in right]):
        found = {side: steps[path] for side, steps in zip(_SIDES, by_side, strict=True) if path in steps}
        same = _same({side: _says(step) for side, step in found.items()})
        made.append({"path": path, "same": same, **{side: _step(step) for side, step in found.items()}})
    return made


def _says(step: Mapping[str, Any]) -> dict[str, Any]:
    """What is compared of a step. A model's ids of its tool calls are new each time, and its tokens are figures."""
    said = {key: step[key] for key in _SAYS}
    if step["kind"] == "model" and isinstance(reply := step["result"], Mapping):
        asked = [one.get("name") for one in reply.get("requests") or () if isinstance(one, Mapping)]
        said["result"] = {"output": reply.get("output"), "asks_for": asked}
    return said


def _step(step: Mapping[str, Any]) -> dict[str, Plain]:
    used = {key: sum(one[key] for one in step["attempts"]) for key in ("tokens_in", "tokens_out", "cost")}
    return {**{key: step[key] for key in _STEP}, **used}


def _order(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """The left paths in their order; those of the right alone after the shared one that they came after."""
    known, after = set(left), ""
    behind: dict[str, list[str]] = {"": []}
    for path in right:
        if path in known:
            after = path
        else:
            behind.setdefault(after, []).append(path)
    return [*behind[""], *(path for one in left for path in (one, *behind.get(one, ())))]


def print_comparison(found: Mapping[str, Any]) -> None:
    """Print it as tables; what differs is marked with `*`. Long values are cut, also where no terminal reads them."""
    click.echo(f"Left  run {found['left']}\nRight run {found['right']}")
    if found["forked"]:
        click.echo(kinship_told(found["forked"]))
    click.echo("")
    for part, title in (("facts", "RUN"), ("input", "INPUT"), ("context", "OUTPUT")):
        if found[part]:
            _print([_row(cell(told(one["key"]), WIDTH), one, told) for one in found[part]], "what", title)
    if found["steps"]:
        _print([_row(one["path"], one, _step_told) for one in found["steps"]], "path", "STEP")
    click.echo(_counts(found["steps"]))


def _row(name: str, one: Mapping[str, Any], say: Any) -> dict[str, Any]:
    sides = {side: cell(say(one[side]), WIDTH) if side in one else "(not there)" for side in _SIDES}
    return {"what": name, "path": name, "mark": "" if one["same"] else "*", **sides}


def _print(rows: list[dict[str, Any]], first: str, title: str) -> None:
    table(rows, {"mark": " ", first: title, "left": "LEFT", "right": "RIGHT"}, "")
    click.echo("")


def _step_told(step: Mapping[str, Any]) -> str:
    """State, attempts, time and tokens where there are any, and then the result or the error."""
    parts = [str(step["state"])]
    if step["attempt"] > 1:
        parts.append(f"{step['attempt']} attempts")
    if step["latency_ms"] is not None:
        parts.append(f"{step['latency_ms']} ms")
    if step["tokens_in"] or step["tokens_out"]:
        parts.append(f"{step['tokens_in']}+{step['tokens_out']} tokens")
    return f"{', '.join(parts)}: {told(step['error'] if step['error'] else step['result'])}"


def _counts(steps: Sequence[Mapping[str, Any]]) -> str:
    both = [one["same"] for one in steps if "left" in one and "right" in one]
    alone = {side: sum(1 for one in steps if side in one) - len(both) for side in _SIDES}
    return (
        f"Steps: {both.count(True)} the same, {both.count(False)} different, "
        f"{alone['left']} of the left run alone, {alone['right']} of the right run alone."
    )
