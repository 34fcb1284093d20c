"""The tasks of Intake: a mail becomes an application, or a BUSINESS error that says why not."""

from __future__ import annotations

import asyncio
from typing import Any

from casework.errors import BusinessError
from casework.examples.email_intake import applications, documents
from casework.process import Change, PlainTask, TaskContext, Transaction, bot_task
from casework.sources.attachments import Attachments

_READERS = {".csv": documents.csv_fields, ".pdf": documents.pdf_fields}


@bot_task("read-attachments", effects=False)
class ReadAttachments(PlainTask):
    """Sets `fields`: texts by name, of all CSV and PDF attachments; `differ` says where these contradict."""

    def __init__(self, attachments: Attachments) -> None:
        self.attachments = attachments

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:  # noqa: ARG002  # as the kind has it
        """Read them.

        Raises:
            BusinessError: one cannot be read, or the CSV has several applications.
        """
        found: dict[str, dict[str, str]] = {}
        listed: Any = transaction.data.get("attachments") or []
        for number, each in enumerate(listed, start=1):
            reader = _READERS.get(str(each["name"]).lower()[-4:])
            if reader is None:
                continue
            if each["reference"] is None:
                raise BusinessError(f"{each['name']} is too large to be kept", code="TOO_LARGE")
            content = await self.attachments.read(each["reference"])
            # A file may take seconds to read, and must not hold up what else the worker does.
            found[f"attachment {number}"] = await asyncio.to_thread(reader, each["name"], content)
        fields, differ = documents.merged(found)
        return Change(data={"fields": fields, "differ": differ})


@bot_task("validate", effects=False)
class Validate(PlainTask):
    """Refuses what is no application."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:  # noqa: ARG002  # as above
        """Check the fields.

        Raises:
            BusinessError: as `applications.validated`.
        """
        applications.validated(fields_of(transaction))
        return None


@bot_task("normalise", effects=False)
class Normalise(PlainTask):
    """Sets `application`, the input of the workflow."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:  # noqa: ARG002  # as above
        """Make it of the fields."""
        return Change(data={"application": applications.normalised(fields_of(transaction))})


@bot_task("compare", effects=False)
class Compare(PlainTask):
    """Holds the attachments against each other: a person says whether the first of them counts."""

    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:  # noqa: ARG002  # as above
        """Refuse what contradicts itself.

        Raises:
            BusinessError: CONTRADICTION.
        """
        differ: Any = transaction.data.get("differ")
        if differ:
            raise BusinessError(
                f"the attachments contradict each other: {'; '.join(differ)}. A clone into "
                "INTAKE_COMPLETED goes on with the first",
                code="CONTRADICTION",
            )
        return None


def fields_of(transaction: Transaction) -> dict[str, str]:
    """The fields that `read-attachments` has set."""
    found: Any = transaction.data.get("fields") or {}
    return dict(found)
