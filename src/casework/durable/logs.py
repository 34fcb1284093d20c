"""Log lines say where they belong: what is logged inside an activity, by whomever, ends with its run, path and attempt.

That holds for tools and libraries too: a tool's thread has the context of its activity.
"""

from __future__ import annotations

import logging

from temporalio import activity


class WhereFilter(logging.Filter):
    """Adds the place to a record, once, and lets every record through."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true."""
        if activity.in_activity() and not hasattr(record, "casework_run_id"):
            info = activity.info()
            record.casework_run_id, record.casework_path = info.workflow_id, info.activity_id
            said = record.getMessage()
            if f"run {info.workflow_id}" not in said:
                record.msg = f"{said} (run {info.workflow_id}: {info.activity_id}, attempt {info.attempt})"
                record.args = ()
        return True


def say_where() -> None:
    """Let every handler of this process do so."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(WhereFilter())
