"""The read-only copy of the governed policy, and which of its rows each run used.

`load` runs in the policy owner's role and replaces the copy; the runtime's role can only read it. A run pins the row it
reads: for good (`turn` None, adoption `pinned`) or for one turn (`next_turn`). The pin keeps the whole row, so the copy
needs no old versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from casework.errors import PolicyFileError
from casework.policy.limits import PolicyLimits
from casework.store import queries
from casework.store.database import Connection
from casework.values import Plain, plain

_SQL = queries.load("policy")
ALL_TURNS = 0
"""The turn under which the row is kept that counts for the whole run."""


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """The limits of a purpose, where the copy has them from and when it got them."""

    limits: PolicyLimits
    source: str
    synced_at: datetime
    pinned_at: datetime | None = None
    """When the run first read it; None for a row of the copy itself."""


@dataclass(frozen=True, slots=True)
class PolicyUse:
    """Which row a run used; `turn` 0: for the whole run."""

    purpose: str
    turn: int
    policy_name: str
    version: int
    source: str
    row: Plain
    created_at: datetime


@dataclass(frozen=True, slots=True)
class LoadReport:
    """Counts of one load. `refused` says which rows and why; they are in the sync log too."""

    read: int
    loaded: int
    removed: int
    refused: tuple[Plain, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncRow:
    """One load or sync, as recorded. `lag_ms`: age of the source's change when it arrived here, where it is known."""

    id: int
    source: str
    source_version: str | None
    rows_read: int
    rows_loaded: int
    rows_removed: int
    refused: Plain
    lag_ms: int | None
    at: datetime


@dataclass(frozen=True, slots=True)
class _Copied:
    purpose: str
    policy_name: str
    version: int
    min_score: int
    auto_approve_ratio: Decimal
    hard_decline_score: int
    hard_decline_ratio: Decimal
    material_delinquencies: int
    valid_from: date | None
    valid_until: date | None
    source: str
    synced_at: datetime


async def load(
    conn: Connection,
    rows: Sequence[PolicyLimits | Mapping[str, Any]],
    *,
    tenant: str = "default",
    source: str = "file",
    source_version: str | None = None,
    refused: Iterable[Any] = (),
    changed_at: datetime | None = None,
    at: datetime | None = None,
) -> LoadReport:
    """Replace the tenant's copy by `rows`, in the owner's role, and record the sync.

    A row without a purpose is refused and reported; `refused` are those that the reader of the source refused before.
    `changed_at` is when the owner changed the source, from which the lag is told.

    Raises:
        PolicyFileError: a purpose is there twice for the same validity, or a row lacks a field; nothing was loaded.
        FatalError: the role may not write the policy.
    """
    kept, nulls = _keyed(rows)
    problems = [*map(plain, refused), *nulls]
    moment = at or datetime.now(UTC)
    await queries.value(conn, _SQL["lock"], {"tenant": tenant})
    removed = await queries.run(conn, _SQL["clear"], {"tenant": tenant})
    for limits in kept:
        await queries.run(conn, _SQL["insert"], _row_params(tenant, limits, source, moment))
    report = LoadReport(len(kept) + len(problems), len(kept), removed, tuple(problems))
    await queries.run(conn, _SQL["log"], _sync_params(tenant, report, source, source_version, changed_at, moment))
    return report


def _keyed(rows: Sequence[PolicyLimits | Mapping[str, Any]]) -> tuple[list[PolicyLimits], list[Plain]]:
    kept: dict[tuple[str, date | None], PolicyLimits] = {}
    nulls: list[Plain] = []
    for number, row in enumerate(rows, start=1):
        limits = row if isinstance(row, PolicyLimits) else _limits(row, number)
        if not (limits.purpose or "").strip():
            nulls.append({"row": number, "column": "purpose", "reason": "the purpose is null or blank: no key"})
            continue
        key = (limits.purpose, limits.valid_from)
        if key in kept:
            raise PolicyFileError(f"Purpose {limits.purpose!r} is there twice for the same validity. Keep one row.")
        kept[key] = limits
    return list(kept.values()), nulls


def _limits(row: Mapping[str, Any], number: int) -> PolicyLimits:
    known = {f.name for f in fields(PolicyLimits)}
    try:
        return PolicyLimits(**{name: value for name, value in row.items() if name in known})
    except TypeError as error:
        raise PolicyFileError(f"Policy row {number} is not complete: {error}. Write all columns.") from error


def _row_params(tenant: str, limits: PolicyLimits, source: str, at: datetime) -> queries.Writing:
    return queries.Writing(tenant=tenant, source=source, synced_at=at, **asdict(limits))


def _sync_params(
    tenant: str,
    report: LoadReport,
    source: str,
    source_version: str | None,
    changed_at: datetime | None,
    at: datetime,
) -> queries.Writing:
    lag = None if changed_at is None else max(0, int((at - changed_at).total_seconds() * 1000))
    return queries.Writing(
        tenant=tenant,
        source=source,
        source_version=source_version,
        rows_read=report.read,
        rows_loaded=report.loaded,
        rows_removed=report.removed,
        lag_ms=lag,
        at=at,
    ).json(refused=list(report.refused))


async def read(conn: Connection, tenant: str, purpose: str, on: date | None = None) -> PolicyRow | None:
    """The row of a normalised purpose that is in force on a day (None: today in UTC), or None."""
    params = queries.Writing(tenant=tenant, purpose=purpose, on=on)
    found = await queries.one(conn, _SQL["read"], params, _Copied)
    return None if found is None else _policy_row(found)


async def rows(conn: Connection, tenant: str) -> list[PolicyRow]:
    """The whole copy, by purpose and validity."""
    found = await queries.many(conn, _SQL["rows"], {"tenant": tenant}, _Copied)
    return [_policy_row(row) for row in found]


def _policy_row(found: _Copied) -> PolicyRow:
    values = asdict(found)
    source, synced_at = values.pop("source"), values.pop("synced_at")
    return PolicyRow(PolicyLimits(**values), source, synced_at)


async def pin(conn: Connection, tenant: str, run_id: UUID, purpose: str, turn: int | None, row: PolicyRow) -> PolicyRow:
    """Keep `row` as the one that the run (`turn` None) or the turn uses; returns the row that was kept first."""
    limits = row.limits
    params = queries.Writing(
        tenant=tenant,
        run_id=run_id,
        purpose=purpose,
        turn=ALL_TURNS if turn is None else turn,
        policy_name=limits.policy_name,
        version=limits.version,
        source=row.source,
    ).json(row=row)
    await queries.run(conn, _SQL["pin"], params)
    kept = await pinned(conn, tenant, run_id, purpose, turn)
    assert kept is not None  # inserted here, or before by another
    return kept


async def pinned(conn: Connection, tenant: str, run_id: UUID, purpose: str, turn: int | None) -> PolicyRow | None:
    """The row that the run (`turn` None) or the turn has pinned, or None."""
    key = queries.Writing(tenant=tenant, run_id=run_id, purpose=purpose, turn=ALL_TURNS if turn is None else turn)
    kept = await queries.dicts(conn, _SQL["pinned"], key)
    return _unplain(kept[0]["row"], kept[0]["created_at"]) if kept else None


def _unplain(kept: Plain, pinned_at: datetime) -> PolicyRow:
    limits = dict(kept["limits"])
    for name in ("auto_approve_ratio", "hard_decline_ratio"):
        limits[name] = Decimal(limits[name])
    for name in ("valid_from", "valid_until"):
        limits[name] = None if limits[name] is None else date.fromisoformat(limits[name])
    return PolicyRow(PolicyLimits(**limits), kept["source"], datetime.fromisoformat(kept["synced_at"]), pinned_at)


async def uses(conn: Connection, tenant: str, run_id: UUID) -> list[PolicyUse]:
    """Which policy rows a run used, oldest first."""
    return await queries.many(conn, _SQL["uses"], {"tenant": tenant, "run_id": run_id}, PolicyUse)


async def syncs(conn: Connection, tenant: str, limit: int = 20) -> list[SyncRow]:
    """The last loads and syncs, newest first."""
    return await queries.many(conn, _SQL["syncs"], {"tenant": tenant, "limit": limit}, SyncRow)
