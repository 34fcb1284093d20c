"""Files of a folder as Transactions: each file one, or each row of a CSV file.

A file is moved only when the Transactions of all that is in it are kept. What a crash leaves between the two is found
again, known by name and content, and moved then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from casework.process.monitors import InputMonitorTask
from casework.sources.attachments import Attachments
from casework.sources.folder.files import Bad, Entity, File, Row
from casework.sources.folder.folder import Folder
from casework.sources.mail import mail_data, parse_mail
from casework.values import clean


class FolderOfFiles(InputMonitorTask[Entity]):
    """Derive from it to make other data of a file. A project provides `Folder`, which lives as long as the worker, and
    `Attachments`.

    The data of a file: `file` (its name), `sha256`, `size` in bytes, `media_type`, and `reference`, by which its
    content is found; of a `.eml` file what `mail_data` describes, with `file` and `sha256`; of a row `file`, `sha256`,
    `row` (its number) and `values` (texts by heading).
    """

    def __init__(self, folder: Folder, attachments: Attachments) -> None:
        self.folder = folder
        self.attachments = attachments

    async def query_input_entities(self) -> Sequence[Entity]:
        """The files that are whole and have not been taken, in the order of their names.

        Raises:
            SettingsError: there is no such folder, or it may not be read.
        """
        return await self.folder.entities()

    async def prepare_input_entity(self, entity: Entity) -> Any:
        """Keep the content; gives the data.

        Raises:
            BusinessError: it cannot be read.
            StateError: it was changed meanwhile.
        """
        match entity:
            case Bad():
                raise self.folder.why(entity)
            case Row(file, number, values):
                return {"file": _shown(file.name), "sha256": file.sha256, "row": number, "values": dict(values)}
            case File():
                return await self._kept(entity)

    async def save_input_entity(self, entity: Entity) -> Mapping[str, Any]:  # noqa: ARG002  # all is prepared
        """The data."""
        return dict(self.prepared)

    async def acknowledge_input_entity(self, entity: Entity) -> None:
        """Move the file, if that is set and this was the last of it."""
        await self.folder.taken(entity)

    async def reject_input_entity(self, entity: Entity, error: Exception) -> None:
        """Move what is at fault itself, if that is set; leave any other alone for a while."""
        await self.folder.refused(entity, error)

    def natural_key(self, entity: Entity) -> str | None:
        """Hash and name, with the row's number; a file of the same name with another content is another."""
        if isinstance(entity, Bad):
            return None
        file, row = (entity.file, f"#{entity.number}") if isinstance(entity, Row) else (entity, "")
        return f"{self.folder.settings.name}:{file.sha256}:{_shown(file.name)}{row}"

    async def _kept(self, file: File) -> dict[str, Any]:
        content = await self.folder.content(file)
        told: dict[str, Any] = {"file": _shown(file.name), "sha256": file.sha256}
        if file.media_type == "message/rfc822":
            mail = await asyncio.to_thread(parse_mail, content, self.folder.settings.limits)  # may take seconds
            return {**await mail_data(mail, self.attachments, content), **told}
        reference = await self.attachments.keep(_shown(file.name), file.media_type, content)
        return {**told, "size": file.size, "media_type": file.media_type, "reference": reference}


def _shown(name: str) -> str:
    """A file's name as it can be kept: bytes of it that are no text are replaced."""
    return str(clean(name).value)
