"""The copy of the policy, its loads, and what runs pinned of it."""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from casework.errors import FatalError, PolicyFileError, StoreUnavailableError
from casework.policy.limits import PolicyLimits
from casework.store import policy
from casework.store.database import Database
from casework.store.policy import LoadReport, PolicyRow
from tests.integration.store.cases import START, TENANT, fetch


def limits(purpose: str = "car", **changes: Any) -> PolicyLimits:
    fields: dict[str, Any] = {
        "purpose": purpose,
        "policy_name": "personal-loans",
        "version": 3,
        "min_score": 700,
        "auto_approve_ratio": Decimal("36.00"),
        "hard_decline_score": 580,
        "hard_decline_ratio": Decimal("50"),
        "material_delinquencies": 2,
    }
    return PolicyLimits(**{**fields, **changes})


async def load(db: Database, *rows: Any, **how: Any) -> LoadReport:
    async with db.transaction() as conn:
        return await policy.load(conn, list(rows), **how)


async def read(db: Database, purpose: str = "car", on: date | None = None) -> PolicyRow | None:
    async with db.transaction() as conn:
        return await policy.read(conn, TENANT, purpose, on)


async def test_owner_loads_and_the_runtime_reads(db: Database, owner_db: Database) -> None:
    """DA-40. The owner's rows are read at once by the runtime, digits kept; the runtime itself cannot load."""
    assert await load(owner_db, limits(), limits("home")) == LoadReport(2, 2, 0)
    found = await read(db)
    assert found is not None
    assert found.limits == limits()
    assert str(found.limits.auto_approve_ratio) == "36.00"
    with pytest.raises(StoreUnavailableError, match="lacks a right"):
        await load(db, limits())


async def test_load_replaces_and_records(owner_db: Database, db: Database) -> None:
    """DA-40. A load replaces the tenant's rows and records source, its version, counts, refusals and lag."""
    await load(owner_db, limits(), limits("home"))
    await load(owner_db, limits("boat"), tenant="other")
    report = await load(
        owner_db,
        limits(version=4),
        limits("  "),
        source="delta:policies",
        source_version="17",
        refused=[{"row": 9, "column": "purpose", "reason": "null"}],
        changed_at=START,
        at=START + timedelta(seconds=3),
    )
    assert (report.read, report.loaded, report.removed, len(report.refused)) == (3, 1, 2, 2)
    async with db.transaction() as conn:
        assert [row.limits.version for row in await policy.rows(conn, TENANT)] == [4]
        assert len(await policy.rows(conn, "other")) == 1
        sync = (await policy.syncs(conn, TENANT))[0]
    assert (sync.source, sync.source_version, sync.lag_ms) == ("delta:policies", "17", 3000)
    assert (sync.rows_read, sync.rows_loaded, sync.rows_removed) == (3, 1, 2)
    assert [problem["column"] for problem in sync.refused] == ["purpose", "purpose"]


async def test_null_key_is_refused_and_reported(owner_db: Database) -> None:
    """DA-40. A row without a key is not dropped in silence, be it a mapping or typed; the others are loaded."""
    from dataclasses import asdict

    nothing: dict[str, Any] = {**asdict(limits()), "purpose": None}
    report = await load(owner_db, nothing, asdict(limits("home")))
    assert report.loaded == 1
    assert report.refused == ({"row": 1, "column": "purpose", "reason": "the purpose is null or blank: no key"},)


async def test_faulty_load_changes_nothing(owner_db: Database, db: Database) -> None:
    """Half a policy is worse than the old one: twice a purpose, a missing column or a wrong value load nothing."""
    await load(owner_db, limits())
    with pytest.raises(PolicyFileError, match="there twice"):
        await load(owner_db, limits(version=9), limits(version=10))
    with pytest.raises(PolicyFileError, match="row 1 is not complete"):
        await load(owner_db, {"purpose": "car"})
    with pytest.raises(FatalError, match=r"policy\.insert"):
        await load(owner_db, limits(version=9), limits("home", min_score=2**40))
    found = await read(db)
    assert found is not None
    assert found.limits.version == 3


async def test_reader_never_sees_a_gap(owner_db: Database, db: Database) -> None:
    """DA-41. While the owner loads again and again, a reader always finds a row."""
    await load(owner_db, limits(version=1))
    loads = asyncio.gather(*(load(owner_db, limits(version=n)) for n in range(2, 12)))
    while not loads.done():
        assert await read(db) is not None
    await loads


async def test_row_counts_within_its_validity(owner_db: Database, db: Database) -> None:
    """DA-39. Of rows of one purpose the one in force on the day counts: from `valid_from` on, before `valid_until`."""
    day = date(2026, 3, 1)
    await load(
        owner_db, limits(version=1, valid_until=day), limits(version=2, valid_from=day, valid_until=date(2026, 4, 1))
    )

    async def version(on: date) -> int | None:
        found = await read(db, on=on)
        return None if found is None else found.limits.version

    assert await version(day - timedelta(days=1)) == 1
    assert await version(day) == 2
    assert await version(date(2026, 4, 1)) is None
    found = await read(db, on=day)
    assert found is not None
    assert (found.limits.valid_from, found.limits.valid_until) == (day, date(2026, 4, 1))


async def test_missing_purpose_is_none(db: Database) -> None:
    """DA-42. The caller decides what a missing row means."""
    assert await read(db, "spaceship") is None


async def test_pinned_row_outlives_the_copy(owner_db: Database, db: Database, run_id: UUID) -> None:
    """DA-41. Pinned: the row first read counts for the whole run, after the owner's edit and deletion too."""
    await load(owner_db, limits(valid_from=date(2026, 1, 1)))
    first = await read(db)
    assert first is not None
    async with db.transaction() as conn:
        assert await policy.pinned(conn, TENANT, run_id, "car", None) is None
        kept = await policy.pin(conn, TENANT, run_id, "car", None, first)
    assert kept.limits == first.limits
    assert kept.pinned_at is not None
    await load(owner_db, limits(version=99))
    second = await read(db)
    assert second is not None
    async with db.transaction() as conn:
        assert (await policy.pin(conn, TENANT, run_id, "car", None, second)).limits == first.limits
        assert await policy.pinned(conn, TENANT, run_id, "car", None) == kept
        used = await policy.uses(conn, TENANT, run_id)
    assert [(use.purpose, use.turn, use.version, use.source) for use in used] == [("car", 0, 3, "file")]


async def test_next_turn_reads_anew(owner_db: Database, db: Database, run_id: UUID) -> None:
    """DA-41. `next_turn`: each turn keeps its own row, and the run records which version each one used."""
    for turn in (1, 2):
        await load(owner_db, limits(version=turn))
        row = await read(db)
        assert row is not None
        async with db.transaction() as conn:
            await policy.pin(conn, TENANT, run_id, "car", turn, row)
    async with db.transaction() as conn:
        assert [(use.turn, use.version) for use in await policy.uses(conn, TENANT, run_id)] == [(1, 1), (2, 2)]


async def test_two_pins_at_once_keep_one_row(owner_db: Database, db: Database, run_id: UUID) -> None:
    """DA-41. Tools side by side that read for the first time agree on one row."""
    await load(owner_db, limits())
    row = await read(db)
    assert row is not None

    async def pin(version: int) -> int:
        async with db.transaction() as conn:
            made = PolicyRow(limits(version=version), "file", row.synced_at)
            return (await policy.pin(conn, TENANT, run_id, "car", None, made)).limits.version

    agreed = set(await asyncio.gather(*(pin(n) for n in range(6))))
    assert len(agreed) == 1
    assert await fetch(db, "select version from agent_ops.agent_policy_uses") == [{"version": agreed.pop()}]
