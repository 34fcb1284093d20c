"""Legal histories of Transactions, through the functions of the store that write them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import UUID, uuid4

from casework.process import Answer, StatusSet
from casework.store.processes import intake, monitors
from casework.store.processes.monitors import RoundRow
from tests.integration.store.processes.making import made
from tests.integration.store.processes.playing import DONE, WAITING, WORKING, Play

OWN = StatusSet.of(
    {WAITING: WORKING, WORKING: ["ARCHIVED", DONE], DONE: "COMPLETED"}, initial=WAITING, terminal=["ARCHIVED"]
)


async def straight_through(play: Play) -> None:
    """To COMPLETED, by Monitors, tasks and Finalizers; the sentences of the happy path."""
    one = await play.taken(natural_key=f"mail-{uuid4()}")
    await play.complete(await play.work(await play.work(one, "check"), "pay"))


async def waiting_and_at_work(play: Play) -> None:
    """One that waits, one in a tray with a step under way, one between steps."""
    await play.begin(await play.taken())
    await play.work(await play.taken())
    await play.born(business_key="lane 7")


async def stays_as_it_is(play: Play) -> None:
    """No Finalizer expects it, its tray lets go of it; a tray of another process takes it later."""
    one = await play.work(await play.taken())
    await play.release(one.claim_id)
    (one,) = await play.claim(1, "again")
    await play.release((await play.work(one)).claim_id)


async def by_a_task(play: Play) -> None:
    """A task sets the status, to one that is not terminal and to one that is."""
    one = await play.work(await play.taken(), to=DONE)
    await play.release(one.claim_id)
    (one,) = await play.claim(1, "submission")
    await play.work(one, "send", to="COMPLETED")


async def own_statuses(play: Play) -> None:
    """A project's own terminal status, by a Finalizer and by a task."""
    play.statuses = OWN
    await play.finalize(await play.work(await play.taken()), "ARCHIVED")
    await play.work(await play.taken(), to="ARCHIVED")


async def retried(play: Play) -> None:
    """An attempt fails, another follows; a worker is lost in a third; the same task on a second visit."""
    one = await play.taken()
    await play.fail(one, then="again")
    step, _ = await play.begin(one, work_attempt=2)
    lost = await play.begin(one, work_attempt=2)
    assert step == lost[0]
    one = await play.end(*lost, replace(one, task="check"))
    await play.complete(await play.work(one, "check", path="check.2"))


async def forgotten(play: Play) -> None:
    """An error that is noted, and the Transaction goes on to its end with it."""
    await play.complete(await play.fail(await play.taken(), then="forget"))


async def failed_and_waiting(play: Play) -> None:
    """It has an error, and no Error process has taken it yet."""
    await play.fail(await play.taken())


async def aborted(play: Play) -> None:
    """By a person's answer in the Error process, by an error task, by the Finalizer, by a command."""
    await play.fail(await play.taken())
    (one,) = await play.claim(1, "errors")
    await play.answer(one, Answer.ABORT)
    await play.fail(await play.taken())
    (one,) = await play.claim(1, "errors")
    await play.answer(one, Answer.ABORT, asked=False)
    await play.fail(await play.taken())
    (one,) = await play.claim(1, "errors")
    await play.finalize(one, "ABORTED")
    await play.by_hand(await play.fail(await play.taken()), Answer.ABORT)


async def answered_while_a_form_is_open(play: Play) -> None:
    """The Error process asks, and a command answers; the step that waited is left as it is, however it ends."""
    for answer, more in [(Answer.ABORT, {}), (Answer.CLONE, {"into": DONE}), (Answer.RESUME, {"at": "pay"})]:
        await play.fail(await play.taken())
        (one,) = await play.claim(1, "errors")
        step, _ = await play.begin(one, "ask-about-error", kind="manual")
        await play.link(step)
        await play.by_hand(one, answer, **more)
    (one,) = await play.claim()
    await play.complete(await play.work(one, "pay"))


async def cloned(play: Play) -> None:
    """By the form, by a command, and the clone again; the last clone is COMPLETED."""
    await play.fail(await play.taken(business_key="of Ann"))
    (one,) = await play.claim(1, "errors")
    await play.answer(one, Answer.CLONE, into=WAITING)
    (one,) = await play.claim()
    await play.by_hand(await play.fail(one), Answer.CLONE, into=WAITING)
    (one,) = await play.claim()
    await play.complete(await play.work(one))


async def orphaned(play: Play) -> None:
    """Its tray is gone, in the middle of a step, before the first one and in the Error process."""
    one = await play.taken()
    await play.begin(one)
    await play.orphaned(one)
    (one,) = await play.claim(1, "errors")
    await play.begin(one, "ask-about-error", kind="manual")
    await play.orphaned(one)
    await play.orphaned(await play.taken())


async def left_to_a_person(play: Play) -> None:
    """The Error process fails it five times, and a person aborts it."""
    await play.fail(await play.taken())
    for _ in range(5):
        (one,) = await play.claim(1, "errors")
        one = await play.fail(one, "ask-about-error")
    assert await play.claim(1, "errors") == []
    await play.by_hand(one, Answer.ABORT)


async def resumed(play: Play) -> None:
    """Goes on at a task, from the form, and fails there once more; then again, by a command."""
    await play.fail(await play.taken())
    (one,) = await play.claim(1, "errors")
    await play.answer(one, Answer.RESUME, at="pay")
    (one,) = await play.claim()
    await play.by_hand(await play.fail(one, "pay"), Answer.RESUME, at="pay")
    (one,) = await play.claim()
    await play.complete(await play.work(one, "pay"))


async def completed_by_hand(play: Play) -> None:
    """By a command, and by the form."""
    await play.by_hand(await play.fail(await play.taken()), Answer.COMPLETE, data={"amount": 7})
    await play.fail(await play.taken())
    (one,) = await play.claim(1, "errors")
    await play.answer(one, Answer.COMPLETE)


async def agents_and_people(play: Play) -> None:
    """An agent task that takes an outcome, a second attempt with another run, and a manual task."""
    one = await play.taken()
    for attempt, task, kind in [(1, "underwrite", "agent"), (2, "underwrite", "agent"), (1, "ask", "manual")]:
        step, begun = await play.begin(one, task, kind=kind, work_attempt=attempt)
        await play.link(step)
        if task == "underwrite" and attempt == 1:
            when = play.now()
            one = await play.end(step, begun, one, state="FAILED", error="the run FAILED", at=when)
        else:
            one = await play.end(step, begun, replace(one, task=task, straight_through=kind != "manual"))
    await play.complete(one)


async def parted_and_joined(play: Play) -> None:
    """Children in their parent's tray, one of them split again, and both joins."""
    parent = await play.taken()
    first, second = await play.split(parent)
    for kid in await play.split(first, task="part"):
        await play.arrive(kid)
    for kid in (first, second):
        await play.arrive(kid)
    await play.arrive(parent)
    await play.complete(parent)
    for kid in (first, second):
        await play.release(kid.claim_id)


async def split_behind_its_join(play: Play) -> None:
    """A join without children, a split, a join of them, and a split once more, whose children are on their way."""
    parent = await play.taken()
    await play.arrive(parent)
    (first,) = await play.split(parent, 1)
    await play.arrive(first)
    await play.work(parent, "join", kind="join", path="join.2")
    await play.split(parent, 2, task="part")


async def joined_across_trays(play: Play) -> None:
    """A child fails, resumes in another tray and arrives there; another one's clone arrives in its place."""
    parent = await play.taken()
    first, second, third = await play.split(parent, 3)
    await play.arrive(first)
    await play.by_hand(await play.fail(second), Answer.RESUME, at="pay")
    await play.by_hand(await play.fail(third), Answer.CLONE, into=WAITING)
    resumed, clone = await play.claim()
    assert (resumed.uuid, clone.parent_uuid) == (second.uuid, parent.uuid)
    for kid in (await play.work(resumed, "pay"), clone):
        await play.arrive(kid)
    await play.arrive(parent)
    await play.release(resumed.claim_id)
    await play.complete(parent)


async def arrived_then_cloned(play: Play) -> None:
    """Children fail behind their join; the clone of one comes to the same join again, that of the other waits."""
    parent = await play.taken()
    first, second = await play.split(parent)
    for kid in (first, second, parent):
        await play.arrive(kid)
    await play.by_hand(await play.fail(first, "pay"), Answer.CLONE, into=WAITING)
    (clone,) = await play.claim()
    await play.release((await play.arrive(clone)).claim_id)
    await play.by_hand(await play.fail(second, "pay"), Answer.CLONE, into=WAITING)


async def siblings_leave_too(play: Play) -> None:
    """A failed child of a split takes the others with it, which are given up."""
    parent = await play.taken()
    kids = await play.split(parent, 3)
    await play.fail(kids[0])
    for kid in kids[1:]:
        await play.orphaned(kid)
    await play.fail(parent, "join", kind="join")
    for one in await play.claim(process="errors"):
        await play.finalize(one, "ABORTED")


async def erased(play: Play) -> None:
    """The erasure role takes a parent, a failed one with a clone, a joined child, and changes a COMPLETED one."""
    parent = await play.taken()
    (kid,) = await play.split(parent, 1)
    await play.arrive(kid)
    await play.fail(parent, "pay")
    await play.by_hand(await play.get(parent.uuid), Answer.CLONE, into=WAITING)
    done = await play.taken(natural_key=f"of Ann, {uuid4()}")
    await play.complete(done)
    await erase(play, "delete from process_ops.transactions where uuid = %s", parent.uuid)
    await erase(play, "update process_ops.transactions set natural_key = null, data = '{}' where uuid = %s", done.uuid)
    (clone,) = [each for each in await play.claim() if each.uuid != kid.uuid]
    await play.complete(clone)
    await erase(play, "delete from process_ops.transactions where uuid = %s", clone.uuid)


async def erase(play: Play, statement: str, uuid: UUID) -> None:
    """In the role for erasure."""
    async with play.db.transaction() as conn:
        await conn.execute("set local role casework_retention")
        assert (await conn.execute(statement.encode(), (uuid,))).rowcount == 1


async def keys_in_any_writing(play: Play) -> None:
    """Natural keys with NUL, half characters, and every plane; texts of errors and names of trays' Monitors as well."""
    for key in (f"a\x00b{uuid4()}", f"\ud800 {uuid4()}", f"Ωμέγα 🦉 % %s {{}} {uuid4()}"):
        await play.complete(await play.taken(natural_key=key))


async def taken_in(play: Play) -> None:
    """From outside, with data that its saving gave, claimed once its tray was full, which no stage tells."""

    async def save(uuid: UUID, connection: object) -> dict[str, object]:
        return {"mail": str(uuid)}

    new = [made(tenant=play.tenant, status="INTAKE_IN_PROGRESS", process="intake") for _ in range(3)]
    async with play.db.transaction() as conn:
        for one in new:
            assert await intake.take_in(conn, one, save, "Mails", one.start_time)
    async with play.db.transaction() as conn:
        tray = await intake.claim_made(
            conn,
            play.tenant,
            process="intake",
            status="INTAKE_IN_PROGRESS",
            uuids=[one.uuid for one in new],
            claim_id=uuid4(),
            by="Mails",
            at=play.now(),
        )
    first, second, third = tray
    await play.finalize(await play.work(first, "store"), "INTAKE_COMPLETED")
    await play.orphaned(third)
    await play.release((await play.work(second, "store")).claim_id)


async def claimed_by_key(play: Play) -> None:
    """With a limit for each business key; a claim that is repeated gives what it gave."""
    for _ in range(3):
        await play.born(business_key="one lane")
    claim = uuid4()
    (one,) = await play.claim(per_key=1, claim_id=claim)
    assert await play.claim(per_key=1, claim_id=claim) == [one]
    await play.finalize(await play.work(one))


async def watched(play: Play) -> None:
    """A Monitor polls, fails a poll, and stops; others are stopped at once, by their Rules, cancelled."""
    await play.born()
    claimed = len(await play.claim())
    rounds = [
        (1, True, claimed, None, True),
        (2, True, 0, None, True),
        (3, True, 0, "by_loops", False),
        (1, False, 0, "by_row", False),
        (1, True, 0, "by_rule", True),
        (2, False, 0, "cancelled", False),
    ]
    lives = iter([*[uuid4()] * 3, *(uuid4() for _ in range(3))])
    for number, polled, taken, stopped, record in rounds:
        row = RoundRow(
            monitor_class="ProcessingMonitor",
            life=next(lives),
            round=number,
            polled=polled,
            at=play.now(),
            claimed=taken,
            trays=1,
            taken_in=0,
            repeated=0,
            bad=0,
            failure="away" if number == 2 else None,
            loop_record=record,
            stopped=stopped,
        )
        async with play.db.transaction() as conn:
            await monitors.told(conn, play.tenant, "processing", loops=number, last_poll=row.at, row=row)


History = Callable[[Play], Awaitable[None]]
HISTORIES: tuple[History, ...] = (
    straight_through,
    waiting_and_at_work,
    stays_as_it_is,
    by_a_task,
    retried,
    forgotten,
    failed_and_waiting,
    aborted,
    answered_while_a_form_is_open,
    cloned,
    orphaned,
    left_to_a_person,
    resumed,
    completed_by_hand,
    agents_and_people,
    parted_and_joined,
    split_behind_its_join,
    joined_across_trays,
    arrived_then_cloned,
    siblings_leave_too,
    erased,
    keys_in_any_writing,
    taken_in,
    claimed_by_key,
    watched,
    own_statuses,
)
