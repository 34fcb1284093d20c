"""Business processes as a model: Transactions, their statuses, and the lines that they move along.

Belongs here: what a Transaction may become, how a line is written down and admitted, and what is due next on it. No
engine, no database, no clock, no ids drawn: instants and ids are given. Does not belong here: claims, trays as durable
runs, tables. Those are built on this model, and it knows nothing of them.
"""

from casework.process.admission import admit, admit_all
from casework.process.declaring import bot_task
from casework.process.failures import ErrorEntity, ErrorType, Severity
from casework.process.lines import LOOP_RULE, BusinessProcess, Finalizer, Line, Rule
from casework.process.monitor_runners import Emitter, MonitorRunner
from casework.process.monitors import (
    ErrorMonitor,
    InputMonitorTask,
    MonitorTask,
    ProcessingMonitor,
    SubmissionMonitor,
    TransactionMonitorTask,
)
from casework.process.policies import Answer, ErrorPolicy, OnError
from casework.process.schedules import Overlap, Schedule, half_days, staggered
from casework.process.shipped import ERRORS, INTAKE, PROCESSING, SUBMISSION
from casework.process.statuses import ABORTED, COMPLETED, DEFAULT_STATUSES, ERROR_IN_PROGRESS, HAS_ERROR, StatusSet
from casework.process.tasks import (
    AgentTask,
    Change,
    Decision,
    ErrorTask,
    InputEntityTask,
    JoinTask,
    ManualTask,
    PlainTask,
    Question,
    Remedy,
    RunEnd,
    SplitTask,
    TaskContext,
    TransactionalTask,
)
from casework.process.transactions import Transaction

__all__ = [
    "ABORTED",
    "COMPLETED",
    "DEFAULT_STATUSES",
    "ERRORS",
    "ERROR_IN_PROGRESS",
    "HAS_ERROR",
    "INTAKE",
    "LOOP_RULE",
    "PROCESSING",
    "SUBMISSION",
    "AgentTask",
    "Answer",
    "BusinessProcess",
    "Change",
    "Decision",
    "Emitter",
    "ErrorEntity",
    "ErrorMonitor",
    "ErrorPolicy",
    "ErrorTask",
    "ErrorType",
    "Finalizer",
    "InputEntityTask",
    "InputMonitorTask",
    "JoinTask",
    "Line",
    "ManualTask",
    "MonitorRunner",
    "MonitorTask",
    "OnError",
    "Overlap",
    "PlainTask",
    "ProcessingMonitor",
    "Question",
    "Remedy",
    "Rule",
    "RunEnd",
    "Schedule",
    "Severity",
    "SplitTask",
    "StatusSet",
    "SubmissionMonitor",
    "TaskContext",
    "Transaction",
    "TransactionMonitorTask",
    "TransactionalTask",
    "admit",
    "admit_all",
    "bot_task",
    "half_days",
    "staggered",
]
