"""Business processes as a model: Transactions, their statuses, and the lines that they move along.

Belongs here: what a Transaction may become, how a line is written down and admitted, and what is due next on it. No
engine, no database, no clock, no ids drawn: instants and ids are given. Does not belong here: claims, trays as durable
runs, tables. Those are built on this model, and it knows nothing of them.
"""

from casework.process.failures import ErrorEntity, ErrorType, Severity
from casework.process.statuses import ABORTED, COMPLETED, DEFAULT_STATUSES, ERROR_IN_PROGRESS, HAS_ERROR, StatusSet
from casework.process.transactions import Transaction

__all__ = [
    "ABORTED",
    "COMPLETED",
    "DEFAULT_STATUSES",
    "ERROR_IN_PROGRESS",
    "HAS_ERROR",
    "ErrorEntity",
    "ErrorType",
    "Severity",
    "StatusSet",
    "Transaction",
]
