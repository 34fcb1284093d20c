"""The application object, put together from its parts, and what the constructors of its tasks ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

from dishka import Provider, Scope

from casework.app import App
from casework.examples.email_intake.lines import processes
from casework.examples.email_intake.settings import LoanMailSettings
from casework.examples.email_intake.submission import LettersFolder, Numbers, NumbersInDatabase
from casework.examples.loan_underwriting.application import MANIFEST, POLICY
from casework.examples.loan_underwriting.script import underwriter
from casework.examples.loan_underwriting.tools import TOOLS
from casework.sources.attachments import Attachments, FolderAttachments
from casework.sources.folder import Folder, FolderSettings
from casework.sources.imap import Mailbox, MailboxSettings


def modules(settings: LoanMailSettings, numbers: type[Numbers] = NumbersInDatabase) -> Provider:
    """What the processes need; a test brings other `numbers`, which need no database."""
    made = Provider(scope=Scope.APP)
    made.provide(lambda: FolderAttachments(settings.kept), provides=Attachments)
    made.provide(lambda: LettersFolder(Path(settings.letters)), provides=LettersFolder)
    made.provide(numbers, provides=Numbers, scope=Scope.REQUEST)
    if settings.mailbox is not None:
        made.provide(_opener(settings.mailbox), provides=Mailbox)
    else:
        mails = FolderSettings(
            path=settings.folder, pattern="*.eml", settle_s=settings.settle_s, done="done", refused="refused"
        )
        made.provide(lambda: Folder(mails), provides=Folder)
    return made


def _opener(wanted: MailboxSettings) -> Callable[[], AsyncIterator[Mailbox]]:
    async def mailbox() -> AsyncIterator[Mailbox]:
        async with Mailbox(wanted) as opened:
            yield opened

    return mailbox


def _app(settings: LoanMailSettings) -> App:
    return App(
        tools=TOOLS,
        manifests=(MANIFEST,),
        scripts={"underwriter": underwriter},
        policy=POLICY,
        processes=processes(mailbox=settings.mailbox is not None),
        modules=(modules(settings),),
    )


app = _app(LoanMailSettings.load())
