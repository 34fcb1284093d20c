"""The task tree: Commander, Jobs and handlers, in process, on asyncio alone.

Belongs here: how nodes start, end, fail and are terminated; their paths; callbacks and the listener. The same code
runs under `asyncio.run` and inside a durable workflow, so there is no clock but the loop's, no randomness, no set whose
order matters, and no import of any other package of Casework. Does not belong here: what a Job is for, storage,
retries, tracing. Those are listeners and Jobs written above.
"""

from casework.tasktree.callbacks import Callbacks
from casework.tasktree.commander import Commander, exit_run
from casework.tasktree.context import current_node
from casework.tasktree.errors import (
    AlreadyAttachedError,
    CommanderBusyError,
    CommanderNotRunningError,
    EndlessWaitError,
    IllegalTransitionError,
    NoCurrentNodeError,
    NodeEndedError,
    NodeFailedError,
    NodeNameError,
    NodeTerminatedError,
    NotACommanderError,
    NotAHandlerError,
    NotAJobError,
    NotAsyncError,
    NotAtRestError,
    NotAttachedError,
    OptionError,
    OtherLoopError,
    ReplyCutError,
    ReservedNameError,
    StreamOverrunError,
    StreamUseError,
    ThreadsRefusedError,
    TimeLimitError,
    TreeError,
)
from casework.tasktree.handlers import HandlerNode, call, handler
from casework.tasktree.job import Job, submit
from casework.tasktree.node import TaskNode
from casework.tasktree.replies import SplitReply, ToolCall, words_in
from casework.tasktree.sending import send
from casework.tasktree.splitting import Consumer, Split
from casework.tasktree.states import NodeState, Stage
from casework.tasktree.streaming import BlockingStream
from casework.tasktree.timeline import mermaid_timeline, svg_timeline

__all__ = [
    "AlreadyAttachedError",
    "BlockingStream",
    "Callbacks",
    "Commander",
    "CommanderBusyError",
    "CommanderNotRunningError",
    "Consumer",
    "EndlessWaitError",
    "HandlerNode",
    "IllegalTransitionError",
    "Job",
    "NoCurrentNodeError",
    "NodeEndedError",
    "NodeFailedError",
    "NodeNameError",
    "NodeState",
    "NodeTerminatedError",
    "NotACommanderError",
    "NotAHandlerError",
    "NotAJobError",
    "NotAsyncError",
    "NotAtRestError",
    "NotAttachedError",
    "OptionError",
    "OtherLoopError",
    "ReplyCutError",
    "ReservedNameError",
    "Split",
    "SplitReply",
    "Stage",
    "StreamOverrunError",
    "StreamUseError",
    "TaskNode",
    "ThreadsRefusedError",
    "TimeLimitError",
    "ToolCall",
    "TreeError",
    "call",
    "current_node",
    "exit_run",
    "handler",
    "mermaid_timeline",
    "send",
    "submit",
    "svg_timeline",
    "words_in",
]
