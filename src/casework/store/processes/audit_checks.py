"""What is checked of the books of business processes: the name of each fault, whose it is, and what to do about it.

The queries stand in `process_audit.sql` under the same names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `query` is its statement's name, `of` what the ids of its faults are ids of."""

    query: str
    fault: str
    of: Literal["Transaction", "claim", "Monitor"]
    remedy: str


_FOREIGN = "Look for who writes the tables beside the product."
_LOG = "The row counts, and its log is no evidence any more. " + _FOREIGN

CHECKS: tuple[Check, ...] = (
    Check("log_ends_otherwise", "stage log ends otherwise", "Transaction", _LOG),
    Check("log_has_a_gap", "stage log has a gap", "Transaction", _LOG),
    Check("log_goes_on_behind_its_end", "stage log goes on behind its end", "Transaction", _LOG),
    Check(
        "end_time_missing",
        "end time is missing",
        "Transaction",
        "Put the constraint transactions_ended_when_terminal back, and set end_time to the time of its last stage.",
    ),
    Check(
        "ended_in_a_tray",
        "ended in a tray",
        "Transaction",
        "It counts as being in that tray and changes no more: set its claim_id to null, in the role for erasure.",
    ),
    Check(
        "natural_key_twice",
        "natural key is there more than once",
        "Transaction",
        "Abort all but one, and build the index transactions_one_per_natural_key anew.",
    ),
    Check(
        "analytics_missing",
        "analytics are missing",
        "Transaction",
        "Enable the triggers transactions_analyse and transactions_analyse_new, and add its row.",
    ),
    Check(
        "analytics_of_another_status",
        "analytics of what is not COMPLETED",
        "Transaction",
        "Delete its row of transaction_analytics, as the owner.",
    ),
    Check(
        "analytics_say_otherwise",
        "analytics say otherwise",
        "Transaction",
        "Neither changes once it is COMPLETED: see which of the two was written past the guards.",
    ),
    Check(
        "claim_unknown",
        "claim is unknown",
        "claim",
        "No Monitor has made it, so no tray walks it: clone or abort its Transactions, once the sweep has found them.",
    ),
    Check(
        "claim_took_more",
        "claim took more than it says",
        "claim",
        "Its tray does not know those that came later: the sweep finds them when it has ended. " + _FOREIGN,
    ),
    Check(
        "trays_overlap",
        "two trays held it at once",
        "Transaction",
        "See in its steps what was done twice. " + _FOREIGN,
    ),
    Check(
        "step_left_started",
        "step is STARTED and its tray is over",
        "Transaction",
        "Whether the step has acted is not known: ask where it acts, by the step's id, which is its key.",
    ),
    Check(
        "visit_completed_twice",
        "visit is COMPLETED more than once",
        "Transaction",
        "See in both steps what was done twice. " + _FOREIGN,
    ),
    Check(
        "work_without_step",
        "work is not in the ledger",
        "Transaction",
        "What the task has done is there, and its step is not. " + _FOREIGN,
    ),
    Check(
        "run_without_step",
        "run belongs to no step",
        "Transaction",
        "Nobody waits for the run: cancel it if it is open.",
    ),
    Check(
        "person_not_told",
        "a person touched it, and it says straight through",
        "Transaction",
        "Count it as touched by a person. " + _FOREIGN,
    ),
    Check(
        "error_missing",
        "error is missing",
        "Transaction",
        "Why it failed is not known: look at its last steps and at the workers' logs of that time.",
    ),
    Check("error_of_another_root", "error names another root", "Transaction", "The Transaction's own root counts."),
    Check(
        "status_before_error",
        "status before its error is another",
        "Transaction",
        "The log counts: clone it into the status that stands there.",
    ),
    Check(
        "hand_not_marked",
        "completion by hand is marked wrongly",
        "Transaction",
        "The log tells who completed it. " + _FOREIGN,
    ),
    Check(
        "clone_of_open",
        "clone does not fit what it replaces",
        "Transaction",
        "Two Transactions stand for one item: abort the one that is not to go on.",
    ),
    Check(
        "cloned_twice",
        "it was cloned more than once",
        "Transaction",
        "Its clones stand for one item: abort all but the one that its entities belong to.",
    ),
    Check("root_wrong", "root is another than its parent's", "Transaction", "Its parent counts. " + _FOREIGN),
    Check(
        "arrival_elsewhere",
        "arrival of another family",
        "Transaction",
        "The join of the other parent took its part: look at that one's result.",
    ),
    Check(
        "joined_without_child",
        "join went on without a child",
        "Transaction",
        "The result of the join lacks that child's part: clone the Transaction once the child is through.",
    ),
    Check(
        "loop_records",
        "loop record is missing, or one too many",
        "Monitor",
        "Each poll emits one unless the Monitor stops: see whether it still polls, and start it anew.",
    ),
    Check(
        "rounds_tell_more",
        "rounds tell of more than its claims took",
        "Monitor",
        "The claims count. " + _FOREIGN,
    ),
)

LEFT_BEHIND = Check(
    "left_behind",
    "entities stay with what was cloned",
    "Transaction",
    "Name the table in App(entities=...); point its rows to the clone, in the role for erasure.",
)
"""The check of a project's own tables of entities, where these are named."""
