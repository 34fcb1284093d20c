"""An input Monitor: entities and their Transactions come in together, once, and a bad one stops nobody."""

from __future__ import annotations

import pytest
from temporalio.client import WorkflowFailureError

from casework.app import App
from casework.durable.monitor_contracts import MONITOR_QUERY, MonitorStanding
from casework.process import PROCESSING, SUBMISSION
from casework.store.processes import intake, monitors
from tests.docs.pages import ROOT, blocks
from tests.integration.durable.conftest import TENANT, House
from tests.integration.durable.processes.post import (
    Box,
    ended,
    furnished,
    monitor,
    office,
    polled,
    processes,
    rounds,
    sql,
)

MAILS = [f"mail-{number}" for number in range(5)]
TICKS = {"pollingInterval": "PT1S", "sleepTime": "PT1S"}
FAST = {"monitors": [{"monitorClass": "Mails", **TICKS}]}
PAGE = ROOT / "docs" / "how_to" / "run_a_process.md"


async def test_five_mails_give_five_transactions_and_one_loop_record(house: House) -> None:
    """BP-12, BP-20: five records and exactly one loop record, in the trace; the entities were saved with them."""
    await furnished(house)
    async with house.with_app(office(Box(MAILS), tray_size=2)) as there:
        assert await processes(there).start(TENANT, "intake", "ann")
        [first] = await polled(there)
        async with there.db.transaction() as conn:
            records = await monitors.records(conn, TENANT, "intake")
    assert (first.taken_in, first.claimed, first.trays, first.loop_record) == (5, 5, 3, True)
    assert [record.sys_repeat for record in records].count(True) == 1
    assert len({record.transaction_uuid for record in records if not record.sys_repeat}) == len(records) - 1 == 5
    keys = "select business_key from process_ops.transactions order by 1"
    assert await sql(house, keys) == [f"of {mail}" for mail in MAILS]
    together = "select l.name from public.letters l join process_ops.transactions t using (uuid) order by 1"
    assert await sql(house, together) == MAILS


async def test_a_repeated_mail_is_a_no_op_and_a_bad_one_stops_nobody(house: House) -> None:
    """BP-20: a natural key that came before makes nothing; a bad entity is an error record, and is not half saved."""
    await furnished(house)
    box = Box([*MAILS[:2], "bad one", MAILS[2]])
    async with house.with_app(office(box)) as there:
        await processes(there).start(TENANT, "intake", "ann")
        await polled(there)
        await processes(there).poll_now(TENANT, "intake", "ann")
        again, first = await polled(there, 2)
        async with there.db.transaction() as conn:
            [bad] = await intake.refused(conn, TENANT, "intake")
    assert (first.taken_in, first.repeated, first.bad) == (3, 0, 1)
    assert (again.taken_in, again.repeated, again.bad) == (0, 3, 1)
    assert (bad.natural_key, bad.code, bad.short_text, bad.times) == (
        "bad one",
        "EMPTY",
        "BusinessError: nothing in it",
        2,
    )
    assert await sql(house, "select name from public.letters order by 1") == MAILS[:3]
    assert box.heard[:4] == [
        ("acknowledged", "mail-0"),
        ("acknowledged", "mail-1"),
        ("rejected: nothing in it", "bad one"),
        ("acknowledged", "mail-2"),
    ]


async def test_a_monitor_takes_in_no_more_than_there_is_room_for(house: House) -> None:
    """BP-32: backpressure: one tray may be under way, so the other mails stay with their source."""
    await furnished(house)
    async with house.with_app(office(Box(MAILS), tray_size=2, max_trays=1)) as there:
        await processes(there).start(TENANT, "intake", "ann")
        [first] = await polled(there)
    assert (first.taken_in, first.trays) == (2, 1)


async def test_the_flag_in_its_row_stops_it_at_its_next_wake(house: House) -> None:
    """BP-16: `stopped` set to 1 by hand; the last round is told, and emits no loop record (BP-12)."""
    await furnished(house)
    async with house.with_app(office(Box(), json=FAST)) as there:
        await processes(there).start(TENANT, "intake", "ann")
        await polled(there)
        await sql(house, "update process_ops.monitor set stopped = 1 where monitor_id = 'intake'")
        end = await ended(there)
        [row] = await sql(there, "select completed_loops, last_polling_time is null, stopped from process_ops.monitor")
    assert end.stopped == "by_row"
    last = (await rounds(there))[0]
    assert (last.stopped, last.polled, last.loop_record) == ("by_row", False, False)
    assert row == (end.loops, False, 1)


async def test_the_statement_of_the_page_stops_it(house: House) -> None:
    """BP-16: as it is written in the documentation, for a Monitor of waiting Transactions and no other."""
    (statement,) = [block.text for block in blocks(PAGE) if block.language == "sql"]
    told = {"monitors": [{"monitorClass": name, **TICKS} for name in ("ProcessingMonitor", "SubmissionMonitor")]}
    async with house.with_app(App(processes=[PROCESSING, SUBMISSION], monitors=told)) as there:
        for name in ("processing", "submission"):
            await processes(there).start(TENANT, name, "ann")
            await polled(there, process=name)
        await sql(house, statement)
        assert (await ended(there, "processing")).stopped == "by_row"
        other = (await processes(there).describe(TENANT, "submission")).monitor
        assert other is not None
        assert other.open


async def test_a_person_polls_stops_and_starts_it(house: House) -> None:
    """BP-16: by signal; what a person stopped stays stopped, also for its schedule, until a person starts it."""
    await furnished(house)
    async with house.with_app(office(Box())) as there:
        client = processes(there)
        assert await client.start(TENANT, "intake", "ann")
        assert not await client.start(TENANT, "intake", "bob")
        await polled(there)
        standing = (await client.describe(TENANT, "intake")).monitor
        assert standing is not None
        assert standing.open
        await client.poll_now(TENANT, "intake", "ann")
        await polled(there, 2)
        await client.stop(TENANT, "intake", "ann")
        assert (await ended(there)).stopped == "by_row"
        async with there.db.transaction() as conn:
            assert await monitors.stopped(conn, TENANT, "intake")
        assert await client.start(TENANT, "intake", "ann")
        await polled(there, 3)
        async with there.db.transaction() as conn:
            assert not await monitors.stopped(conn, TENANT, "intake")


async def test_a_row_of_configuration_goes_before_the_json(house: House) -> None:
    """BP-17, BP-13: the values in force, their sources and what was ignored are shown."""
    await furnished(house)
    await sql(
        house,
        "insert into process_ops.monitor_configuration (monitor_class, max_loops, sleep_time) values (%s, %s, %s)",
        *("Mails", 1, "PT7S"),
    )
    mails = {"monitorClass": "Mails", "pollingInterval": "PT9S", "sleepTime": "PT2S"}
    async with house.with_app(office(Box(), json={"monitors": [mails, {"monitorClass": "Mails", "x": 1}]})) as there:
        await processes(there).start(TENANT, "intake", "ann")
        assert (await ended(there)).stopped == "by_loops"
        standing = await monitor(there).query(MONITOR_QUERY, result_type=MonitorStanding)
    in_force = standing.in_force
    assert in_force is not None
    assert in_force.sources == {
        "polling_interval": "json",
        "sleep_time": "row",
        "max_loops": "row",
        "max_running_time": "default",
    }
    assert (in_force.polling_ms, in_force.sleep_ms) == (9000, 7000)
    assert "field 'x'" in in_force.ignored[0]


async def test_a_source_that_is_away_ends_the_poll_and_not_the_monitor(house: House) -> None:
    """The failure is told with the round and recorded; the next poll goes well."""
    await furnished(house)
    box = Box(MAILS, away=True)
    async with house.with_app(office(box)) as there:
        await processes(there).start(TENANT, "intake", "ann")
        [first] = await polled(there)
        assert (first.taken_in, first.bad, first.failure) == (0, 1, "the mailbox is away")
        assert first.loop_record
        box.away = False
        await processes(there).poll_now(TENANT, "intake", "ann")
        again, _ = await polled(there, 2)
    assert again.taken_in == 5


async def test_a_process_that_there_is_not_fails_its_monitor(house: House) -> None:
    """The end says which there are."""
    async with house.with_app(office(Box())) as there:
        await processes(there).start(TENANT, "intaek", "ann")
        with pytest.raises(WorkflowFailureError) as failed:
            await ended(there, "intaek")
        life = (await processes(there).describe(TENANT, "intaek")).monitor
    assert "there is no process 'intaek'; there are intake. Did you mean 'intake'?" in str(failed.value.cause)
    assert life is not None
    assert (life.open, life.how) == (False, "FAILED")
    assert [each.stopped for each in await rounds(house, "intaek")] == ["failed"]
