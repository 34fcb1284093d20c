"""The example's mails out of a real mailbox, through the engine: taken in by the Monitor, checked by its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from casework.app import App
from casework.examples.email_intake.application import modules
from casework.examples.email_intake.lines import processes as lines
from casework.examples.email_intake.play import SAMPLES
from casework.examples.email_intake.settings import LoanMailSettings
from casework.sources.imap import MailboxSettings
from casework.sources.references import SecretReference
from tests.integration.durable.conftest import TENANT, House, eventually
from tests.integration.durable.processes.post import SLOW, polled, processes, sql
from tests.integration.sources.imap_server import PASSWORD, USER, VARIABLE, running

COUNTS = "select status, count(*) from process_ops.transactions group by status order by status"


@pytest.mark.timeout(120)
async def test_a_mailbox_is_taken_in_once(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BP-20, BP-22. Nine mails, two of them one: each has its Transaction and is filed; a second poll adds nothing.

    Their attachments are read by the line, whose Tasks only compute, for all of a tray together.
    """
    monkeypatch.setenv(VARIABLE, PASSWORD)
    with running(tmp_path) as imap:
        imap.make("Taken", "Refused")
        imap.put(*(each.read_bytes() for each in sorted(SAMPLES.glob("*.eml"))))
        password = SecretReference(variable=VARIABLE)
        mailbox = MailboxSettings(
            host=imap.host,
            port=imap.port,
            encryption="none",
            user=USER,
            password=password,
            move_to="Taken",
            refused_to="Refused",
        )
        settings = LoanMailSettings(kept=str(tmp_path / "kept"), letters=str(tmp_path / "letters"), mailbox=mailbox)
        intake = lines(mailbox=True)[0]
        monitors = {"monitors": [{"monitorClass": intake.monitor.monitor_class(), **SLOW}]}
        app = App(processes=(intake,), modules=(modules(settings),), monitors=monitors)
        async with house.with_app(app) as there:
            assert await processes(there).start(TENANT, "intake", "ann")
            [first] = await polled(there)

            async def through() -> bool:
                counts = {row[0]: row[1] for row in await sql(there, COUNTS)}
                return counts == {"HAS_ERROR": 4, "INTAKE_COMPLETED": 4}

            await eventually(through, "all mails have been read")
            await processes(there).poll_now(TENANT, "intake", "ann")
            again, _ = await polled(there, 2)
        assert (first.taken_in, first.repeated, first.bad) == (8, 1, 0)
        assert (again.taken_in, again.repeated, again.bad) == (0, 0, 0)
        assert [len(imap.subjects(folder)) for folder in ("INBOX", "Taken", "Refused")] == [0, 9, 0]
