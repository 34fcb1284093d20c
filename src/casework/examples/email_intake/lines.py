"""The four processes: mails become applications, applications decisions, decisions letters; the fourth mends."""

from __future__ import annotations

from dataclasses import replace

from casework.examples.email_intake.intake import Compare, Normalise, ReadAttachments, Validate
from casework.examples.email_intake.mails import LoanMails
from casework.examples.email_intake.repair import RepairApplication
from casework.examples.email_intake.submission import NumberLetter, WriteLetter, WriteReport
from casework.examples.email_intake.underwriting import Underwrite
from casework.process import ERRORS, INTAKE, LOOP_RULE, PROCESSING, SUBMISSION, BusinessProcess, InputMonitorTask
from casework.process.shipped import AskAboutError
from casework.sources.imap import ImapMailbox


def processes(*, mailbox: bool = False) -> tuple[BusinessProcess, ...]:
    """The processes; with `mailbox` mails come from there, else from the folder."""
    monitor: type[InputMonitorTask[object]] = ImapMailbox if mailbox else LoanMails  # type: ignore[assignment]
    return (
        replace(INTAKE, monitor=monitor, tasks=(ReadAttachments, Validate, Normalise, Compare), tray_size=20),
        replace(PROCESSING, tasks=(Underwrite,)),
        replace(SUBMISSION, tasks=(NumberLetter, WriteLetter, WriteReport), tray_size=20),
        replace(ERRORS, tasks=(RepairApplication, AskAboutError), rules=(LOOP_RULE,)),
    )
