"""The processes of the mail example in memory: a folder of mails, an agent that approves, a reviewer who follows rules.

`Office` is what a test opens: it puts mails in, polls until nothing moves, and knows Transactions, errors and letters.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.message import EmailMessage
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar
from uuid import UUID

from casework.examples.email_intake.application import modules
from casework.examples.email_intake.lines import processes
from casework.examples.email_intake.settings import LoanMailSettings
from casework.process import Decision, Question, RunEnd, Transaction
from casework.process.local import LocalProject


class CountedNumbers:
    """Numbers of letters, counted in memory; a new office begins anew."""

    drawn: ClassVar[dict[str, int]] = {}

    async def draw(self, tenant: str, day: str) -> int:  # one tenant
        """The next number."""
        self.drawn[day] = self.drawn.get(day, 0) + 1
        return self.drawn[day]


class Office:
    """The example in `home`; `asked` are the questions that a person got, `runs` the inputs of the workflow."""

    def __init__(self, home: Path) -> None:
        self.mails, self.letters = home / "mails", home / "letters"
        self.mails.mkdir()
        CountedNumbers.drawn.clear()
        self.asked: list[str] = []
        self.runs: list[Mapping[str, Any]] = []
        settings = LoanMailSettings(str(self.mails), str(home / "kept"), str(self.letters), settle_s=0)
        self.project = LocalProject(
            processes(), modules=[modules(settings, CountedNumbers)], agent=self._approves, reviewer=self._says
        )

    async def __aenter__(self) -> Office:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.project.__aexit__(kind, error, trace)

    def put(self, name: str, *attachments: tuple[str, bytes], message_id: str = "") -> None:
        """A mail with these attachments."""
        mail = EmailMessage()
        mail["Message-ID"] = message_id or f"<{name}@sample.example>"
        mail.set_content("Please find it attached.")
        for file, content in attachments:
            mail.add_attachment(content, maintype="application", subtype="octet-stream", filename=file)
        (self.mails / f"{name}.eml").write_bytes(mail.as_bytes())

    @property
    def rows(self) -> list[Transaction]:
        """All Transactions, in the order in which they were made."""
        return list(self.project.store.transactions.values())

    @property
    def codes(self) -> list[str]:
        """The codes of all errors."""
        return [error.code for error in self.project.store.errors]

    async def _approves(self, workflow: str, run_id: UUID, given: Mapping[str, Any]) -> RunEnd:
        assert workflow == "loan-underwriting"
        self.runs.append(given)
        return RunEnd(run_id, "approved")

    def _says(self, transaction: Transaction, question: Question) -> Decision:  # a Reviewer
        self.asked.append(question.text)
        if "CONTRADICTION" in question.text:
            return Decision("clone", data={"into": "INTAKE_COMPLETED"})
        return Decision("abort")
