"""What crosses the durable boundary: one frozen dataclass in and one out per activity, signal and update.

Workflow code imports this module and never an activity body. Names here are written into histories: a field may be
added with a default, never renamed or removed. Annotations are types and not texts here, because the engine's converter
would evaluate each text anew for every value that it reads, which was a tenth of a replay.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

RUN_WORKFLOW = "casework.run"
TREE_WORKFLOW = "casework.tree"
RUN_TYPES = (RUN_WORKFLOW, TREE_WORKFLOW)
"""Types of Temporal workflows that are runs: of a graph, of a free tree."""
OF_RUNS = f"WorkflowType IN {RUN_TYPES}"
"""The same in the engine's query language."""
SWEEP_WORKFLOW = "casework.sweep"
CALL_MODEL = "casework.call_model"
CALL_TOOL = "casework.call_tool"
RUN_SEGMENT = "casework.run_segment"
PROJECT = "casework.project"
OPEN_SUB_RUN = "casework.open_sub_run"
SWEEP = "casework.sweep_runs"
DECIDE_SIGNAL = "decide"
DECIDE_UPDATE = "decide_and_confirm"
CANCEL_SIGNAL = "cancel"
TELL_AGAIN_SIGNAL = "tell_again"
NAMED_SIGNAL = "signal"
"""The engine's signal that brings those that WAIT nodes wait for, each with its name."""
STATE_QUERY = "state"
STANDING_QUERY = "standing"
TRACE_QUERY = "trace"
EVENTS_A_SECOND = 1000
"""Events of a history that a busy worker reads again in a second."""
QUEUED_TOO_LONG = "QueuedTooLongError"
"""Type of the failure of a step that a worker took too late and did not begin."""


@dataclass(frozen=True)
class CancelRequest:
    """Stop the run."""

    by: str
    reason: str


@dataclass(frozen=True)
class Carried:
    """What a part of a run takes over from the one before: all that its history would have told.

    `part` counts from 1, `since` is when the first began. `at_rest` is the path of the visit that was at rest, and
    `done` how many exchanges it had behind it; None between two visits.
    """

    part: int
    since: str
    state: Mapping[str, Any]
    counters: Mapping[str, Any]
    journal: Mapping[str, Any]
    inbox: Mapping[str, Any]
    outbox: tuple[Mapping[str, Any], ...] = ()
    flushes: int = 0
    at_rest: str | None = None
    done: int = 0
    cancel: CancelRequest | None = None


@dataclass(frozen=True)
class Fork:
    """Where a run was forked: from which run, at which step as it was named, and in which visit it begins.

    `edits` are the keys of the context that were edited, `kept` how many steps of that visit are not done again, `anew`
    why none is; "" where nothing stood against it.
    """

    run_id: str
    path: str
    visit: str
    edits: tuple[str, ...] = ()
    kept: int = 0
    anew: str = ""


@dataclass(frozen=True)
class RunStart:
    """Input of a run, or of a part of it. `bundle` is what it is pinned to, as applied (PinnedWorkflow or PinnedTree).

    Defaults are what older histories say by saying nothing: one that changes needs a new field.
    """

    run_id: str
    tenant: str
    user: str
    input: Mapping[str, Any]
    bundle: Mapping[str, Any]
    workflow_version: int
    turn_limit: int = 5
    model: str | None = None
    actor: str = ""
    request_hash: str = ""
    """With `actor`, for the row alone: from this input it can be made again."""
    roll_over_events: int = 4_000
    roll_over_bytes: int = 4_000_000
    """How long a history gets, at most, before the run goes on as the next part."""
    carried: Carried | None = None
    """None in the first part, but for a fork's: that is what it begins with."""
    parent_run_id: str = ""
    parent_path: str = ""
    """The run that started this one, and the SUBWORKFLOW's path in it; "" where there is none."""
    fork: Fork | None = None
    """Of a run that was forked from another."""
    sends_mentioned: bool = False
    """Whether a step is sent only those parts of the context that its node mentions. Older runs sent the whole."""
    transaction: str = ""
    """The Transaction whose agent or manual task started it; its tray is told what the last node stored."""
    form: bool = False
    """Whether its input is a form for a person, who is shown it where an agent's recommendation stands otherwise."""

    @property
    def started_by(self) -> str:
        """Who waits for it in the engine, as a reader is told; "" where nobody does."""
        if self.parent_run_id:
            return f"run {self.parent_run_id}, which started it"
        return f"the tray of Transaction {self.transaction}, which started it" if self.transaction else ""


def workflow_type(bundle: Mapping[str, Any]) -> str:
    """Which Temporal workflow carries out a run of `bundle`."""
    return TREE_WORKFLOW if "tree" in bundle else RUN_WORKFLOW


def task_seconds(bundle: Mapping[str, Any]) -> int | None:
    """How long the engine waits for a workflow task, in which a worker may have to read the whole history again; None:
    its default of ten seconds. An event takes half a millisecond where the machine is quiet."""
    events = bundle["tree"]["maxEvents"] if "tree" in bundle else 0
    return events // EVENTS_A_SECOND if events > 10 * EVENTS_A_SECOND else None


def name_of(bundle: Any) -> str:
    """The name of the workflow or tree; "" of what does not hold, which fails the run later by its own words."""
    try:
        return str(bundle["tree"]["name"] if "tree" in bundle else bundle["workflow"]["metadata"]["name"])
    except (KeyError, TypeError):
        return ""


@dataclass(frozen=True)
class RunEnd:
    """Result of the run workflow."""

    status: Literal["COMPLETED", "FAILED", "CANCELLED"]
    outcome: str | None = None
    failure: str | None = None
    output: Any = None
    """What the last node stored, or the tree returned; only for the run or tray that started this one."""


@dataclass(frozen=True)
class Owner:
    """Whose step an activity works on, on every activity's input."""

    tenant: str
    run_id: str


@dataclass(frozen=True)
class Say:
    """A user message: ready words, or (with `words` None) the node's rendered input template."""

    position: int
    words: str | None = None


@dataclass(frozen=True)
class ModelCall:
    """Ask a model once. The transcript is read up to `up_to`; the answer is written at `position`.

    `say` are user messages that this call writes first, at the positions before `position`.
    """

    owner: Owner
    path: str
    workflow: str
    workflow_version: int
    node: str
    agent: str
    turn: int
    up_to: int
    position: int
    say: tuple[Say, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    outbox: tuple[Mapping[str, Any], ...] = ()
    attempts: int = 0
    """Most that the ledger may hold; 0: as the engine counts them."""
    own: int | None = None
    """How many messages up to there are the agent's own, where asks of others may be under way. None: there are none
    such, so no position up to there may be empty."""
    branch: str = ""
    """Which branch of the node; "": the node itself."""
    kept_as: str = ""
    """Under which name the messages are kept, where it is not the agent's: a branch's agent has them to itself."""


@dataclass(frozen=True)
class ToolRequest:
    """A tool the model asked for: its arguments stay in the transcript, at `index` of the answer."""

    index: int
    call_id: str
    name: str


@dataclass(frozen=True)
class ModelReply:
    """What control flow needs of the answer: tools to call, or the node's output."""

    requests: tuple[ToolRequest, ...] = ()
    output: Any = None
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True)
class ToolCall:
    """Run one tool. Its arguments come from the answer at `answer_position`, or ready-made from `arguments`."""

    owner: Owner
    path: str
    workflow: str
    workflow_version: int
    node: str
    agent: str
    turn: int
    name: str
    position: int = 0
    """Where the tool's message goes in the transcript; 0 writes none (a TOOL node)."""
    answer_position: int = 0
    index: int = 0
    call_id: str = ""
    arguments: Mapping[str, Any] | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    outbox: tuple[Mapping[str, Any], ...] = ()
    attempts: int = 0
    """Most that the ledger may hold; 0: as the engine counts them."""
    literal: bool = False
    """Whether `arguments` are values as they are, and no templates."""
    kept_as: str = ""
    """As of a model call."""


@dataclass(frozen=True)
class ToolReply:
    """`state` is COMPLETED, or FAILED where the model was told an error. `result` only where there is no message."""

    state: Literal["COMPLETED", "FAILED"]
    result: Any = None
    error: str | None = None


@dataclass(frozen=True)
class Project:
    """Apply outbox entries, nothing else."""

    owner: Owner
    outbox: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class SubRun:
    """Make the run of a SUBWORKFLOW ready: `name` is the workflow or free tree, `run_id` the run's id to be."""

    owner: Owner
    path: str
    workflow: str
    workflow_version: int
    name: str
    run_id: str
    user: str
    actor: str
    turn_limit: int
    model: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    outbox: tuple[Mapping[str, Any], ...] = ()
    attempts: int = 0


@dataclass(frozen=True)
class SubRunReply:
    """The version that the sub-run is pinned to and its input; or why there is none, which fails the node."""

    version: int
    input: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class Decision:
    """A person's answer, as signal and as update."""

    review_id: str
    decision_id: str
    command: str
    reason: str
    reviewer: str


@dataclass(frozen=True)
class DecisionReply:
    """Answer of the update. `reason` says why a decision was not accepted."""

    accepted: bool
    reason: str | None = None


@dataclass(frozen=True)
class Signal:
    """A signal for a WAIT node. The same `signal_id` is the same signal; `by` is who sent it."""

    name: str
    signal_id: str
    by: str
    payload: Any = None


@dataclass(frozen=True)
class Standing:
    """Where a run stands by its own account: the version of its last row, and how many entries are still to be sent."""

    version: int
    status: str
    unsent: int


@dataclass(frozen=True)
class SweepReport:
    """Counts of one sweep.

    Rows started anew, closed as FAILED, looked at; rows that could not be started yet; rows older than their run, which
    was asked to write them again; rows made again for runs that had none; open runs without a row that could not be
    made; runs asked to stop because their row has ended; open runs that an incident holds; what could not be settled
    in this sweep, for the next. One that is not `whole` has only started rows. `orphaned`: open runs whose row was
    closed because the engine did not have them; they are told and not stopped. `refused`: why the sweep did nothing,
    where this engine is not the one that the database's runs are in. `orphans`: Transactions that no tray worked on any
    more, and which got an error.
    """

    started: int = 0
    failed: int = 0
    seen: int = 0
    stuck: int = 0
    behind: int = 0
    restored: int = 0
    unknown: int = 0
    stopped: int = 0
    incidents: int = 0
    left: int = 0
    whole: bool = True
    orphaned: int = 0
    refused: str | None = None
    orphans: int = 0
