"""A query on somebody else's PostgreSQL as a source of work.

Belongs here: its connection, pages of rows, their values, and the monitor. Does not belong here: this project's own
tables (`store`).
"""

from casework.sources.sql.monitor import SqlQuery
from casework.sources.sql.rows import SqlRow
from casework.sources.sql.settings import SqlSettings
from casework.sources.sql.source import SqlSource

__all__ = ["SqlQuery", "SqlRow", "SqlSettings", "SqlSource"]
