"""A folder of files as a source of work.

Belongs here: which files are whole, what they are, what becomes of those that are taken, and the monitor. Does not
belong here: what a mail says (`mail`), and where contents are kept (`attachments`).
"""

from casework.sources.folder.files import Bad, Entity, File, Row
from casework.sources.folder.folder import Folder
from casework.sources.folder.monitor import FolderOfFiles
from casework.sources.folder.settings import FolderSettings

__all__ = ["Bad", "Entity", "File", "Folder", "FolderOfFiles", "FolderSettings", "Row"]
