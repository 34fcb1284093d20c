"""The head of Intake: each mail of a folder a Transaction; what has the Message-ID of one before is the same mail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from casework.errors import StateError
from casework.sources.attachments import Attachments
from casework.sources.folder import Folder, FolderOfFiles
from casework.sources.folder.files import Entity, File
from casework.sources.mail import parse_mail


class LoanMails(FolderOfFiles):
    """A folder knows a file by its content; two files that hold the same mail, sent twice, differ in it."""

    def __init__(self, folder: Folder, attachments: Attachments) -> None:
        super().__init__(folder, attachments)
        self._keys: dict[str, str] = {}

    async def query_input_entities(self) -> Sequence[Entity]:
        """As the folder's, and the Message-ID of each.

        Raises:
            SettingsError: there is no such folder, or it may not be read.
        """
        found = await super().query_input_entities()
        for entity in found:
            if isinstance(entity, File):
                await self._look(entity)
        return found

    def natural_key(self, entity: Entity) -> str | None:
        """The mail's Message-ID, or the hash of its bytes; the file's own key where it could not be read."""
        return (
            self._keys.get(entity.name)
            if isinstance(entity, File) and entity.name in self._keys
            else (super().natural_key(entity))
        )

    async def _look(self, file: File) -> None:
        try:
            content = await self.folder.content(file)
        except StateError:
            return  # it is gone, or is being changed; to save it tells so
        mail = await asyncio.to_thread(parse_mail, content, self.folder.settings.limits)
        self._keys[file.name] = f"mail:{mail.key}"
