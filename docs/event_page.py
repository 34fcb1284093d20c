"""The page of events: every kind there is, with what it means. A test finds the kinds in the code."""

from __future__ import annotations

import re
from pathlib import Path

from docs.markdown import GENERATED, table

SOURCES = Path(__file__).parents[1] / "src" / "casework"

KINDS = {
    "agent.run_started": ("the run", "the engine has begun it", "`workflow`, `version`; of a free tree `tree_version`"),
    "agent.run_forked": (
        "the run",
        "it was forked from another and begins where that one was",
        "`run_id`, `path`: of the other run; `visit`, `edits`: keys, `kept`: steps of the visit, `anew`: why not more",
    ),
    "agent.run_completed": ("the run", "it ended COMPLETED", "`outcome`"),
    "agent.run_failed": ("the run", "it ended FAILED", "`failure`"),
    "agent.run_cancelled": ("the run", "it ended CANCELLED", "`failure`: by whom and why"),
    "agent.run_cancel_requested": ("the run", "somebody asked it to stop", "`by`, `reason`"),
    "agent.run_cancel_ignored": (
        "the run",
        "it had come to another end before it could stop; that end stands",
        "`by`, `why`: the end it came to",
    ),
    "agent.run_told_again:VERSION": (
        "the run",
        "its rows were older than itself, as after a restored database; it wrote them again",
        "`status`",
    ),
    "agent.run_rolled_over:PART": (
        "the run",
        "its history was long, so it went on as a new one; nothing else changed",
        "`events`, `bytes`: of the part that ended",
    ),
    "agent.node_started": ("a visit", "a graph node is entered", "`node`"),
    "agent.node_completed": ("a visit", "the visit succeeded", "`node`"),
    "agent.node_failed": ("a visit", "the visit failed; an `onError` edge may catch it", "`node`, `error`"),
    "agent.node_terminated": ("a visit", "the visit was cut off, as by a cancellation", "`node`"),
    "agent.nodes_untold": (
        "the run",
        "a free tree had more Jobs than are told as visits",
        "`jobs`: ended without an event; `told`: events of the others",
    ),
    "agent.history_limit": ("the run", "a free tree is stopped, since its history is as long as it may be", "`reason`"),
    "agent.model_answered": (
        "a step",
        "a model call completed; commits with its result",
        "`asks_for`: the tools it asks for",
    ),
    "agent.model_failed": ("a step", "a model call was given up", "`name`, `error`"),
    "agent.tool_completed": (
        "a step",
        "a tool call completed; commits with its result",
        "`name`, and `found` where `verify` said it was done",
    ),
    "agent.tool_failed": (
        "a step",
        "a tool call failed for good: refused, or given up; the model is told",
        "`name`, `error`",
    ),
    "agent.store_unavailable": (
        "a step",
        "the step had to wait for the database, which is back; the wait used no attempt",
        "`since`, `waited`: seconds, `error`: what the database said last",
    ),
    "agent.payload_unreadable": (
        "a step",
        "the step had to wait for a worker that has the key or the blob of a value; the wait used no attempt",
        "`since`, `waited`: seconds, `error`: what was missing",
    ),
    "agent.review_pending": ("a visit", "a person is asked", "`review_id`, `node`, `note`: why a decision is refused"),
    "agent.branch_completed": ("a branch", "a branch of a PARALLEL or MAP succeeded", "`branch`"),
    "agent.branch_failed": ("a branch", "it failed; the others go on", "`branch`, `error`"),
    "agent.sub_run_started": ("a SUBWORKFLOW", "a run of its own is started below", "`run_id`, `workflow`"),
    "agent.sub_run_ended": ("a SUBWORKFLOW", "that run has ended", "`run_id`, `status`"),
    "agent.wait_started": (
        "a WAIT",
        "the run waits, as intended, without a worker",
        "`signal`: the one it waits for, `until`: when the time is up",
    ),
    "agent.wait_over": ("a WAIT", "it does not wait any more", "`timed_out`: whether the time was up"),
    "agent.signal_received:ID": ("the run", "a signal came, and is kept until a WAIT takes it", "`name`, `by`"),
    "agent.signal_refused:ID": ("the run", "a signal came, and too many are kept already", "`name`, `by`, `why`"),
    "agent.decision_accepted": ("a visit", "a decision counts", "`command`, `reason`, `reviewer`"),
    "decision_ignored:ID": ("a visit", "a decision did not count", "`review_id`, `command`, `reviewer`, `why`"),
    "decision_stale:ID": (
        "a visit",
        "a decision was accepted by the run after its row had been closed",
        "what was found",
    ),
    "attempt_failed:N": ("a step", "attempt N reported an error and may be tried again", "`name`, `attempt`, `error`"),
    "attempt_lost:N": ("a step", "attempt N reported nothing and another began", "`name`, `attempt`, `reason`"),
    "attempt_late:N": (
        "a step",
        "the result of attempt N came too late and is not used",
        "`name`, `attempt`, `current`, `state`",
    ),
    "run_stale:VERSION": ("the run", "a state arrived that is older than the row", "what was found"),
    "context_stale:KEY:VERSION": ("a visit", "an output arrived that is older than the row", "what was found"),
    "run_closed_from_outside": (
        "the run",
        "the sweep closed it: its Temporal workflow is gone, or has ended without its row",
        "`reason`",
    ),
    "run_restored": ("the run", "the sweep made its row again from its Temporal workflow", "`reason`"),
    "incident_raised:TIME": ("the run", "it cannot go on until something outside it is mended", "`reason`, `at`"),
    "incident_cleared:TIME": ("the run", "it can; TIME is that of the incident", "`reason`: the incident's"),
    "conflict:HASH": ("a step", "a write met a row that it may not touch; the run ends FAILED", "`error`"),
}
"""By kind: at whose path, what it means, its data."""

_LITERAL = re.compile(
    r"""f?"((?:agent\.\w+|attempt_\w+:|\w+_stale:|decision_ignored:|conflict:|run_closed\w+|run_restored|incident_\w+:)[^"\s]*)\""""
)
_FAMILY = {"agent.run_": "agent.run_completed", "agent.": "agent.model_failed"}


def kinds_in_code() -> set[str]:
    """The kinds as the code writes them, each in the form of the page."""
    found = set()
    for file in sorted(SOURCES.rglob("*.py")):
        if file.relative_to(SOURCES).parts[0] in ("durable", "store"):
            found |= {_shown(literal) for literal in _LITERAL.findall(file.read_text(encoding="utf-8"))}
    return found


def _shown(literal: str) -> str:
    """`attempt_lost:{lost.attempt}` as `attempt_lost:`; a family of names by one of its members."""
    fixed = literal.partition("{")[0]
    return _FAMILY.get(fixed, fixed)


def documented() -> set[str]:
    """The kinds of the page, without the part that differs."""
    return {kind.partition(":")[0] + (":" if ":" in kind else "") for kind in KINDS}


def events() -> str:
    """Every kind of event."""
    rows = [(f"`{kind}`", *facts) for kind, facts in KINDS.items()]
    return "\n\n".join(
        [
            GENERATED,
            "# Events",
            "Events are the numbered milestones of a run: `GET /v1/runs/{run_id}/events`, `casework runs watch`, "
            "table `agent_ops.agent_events`. `seq` counts from 1 without a gap; it is taken under "
            "the run's row lock, so whoever asks for those after the last number it saw misses none. `at` is when "
            "it happened, `path` [where](../concepts/paths.md), `data` an object.",
            "An event's id follows from run, path and kind, so one kind happens once at a path; what may happen "
            "again carries in its kind what makes it single.",
            table(("kind", "at the path of", "means", "data"), rows),
        ]
    )
