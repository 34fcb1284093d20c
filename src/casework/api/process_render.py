"""From rows, lines and the engine's word to the answers of `process_shapes`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from casework.api.render import when
from casework.durable.process_client import MonitorLife, ScheduleStanding
from casework.process import ErrorEntity
from casework.process.declaring import TaskSpec
from casework.process.lines import Line
from casework.process.monitor_settings import Effective
from casework.process.schedules import Schedule
from casework.process.working import Family
from casework.store.processes.intake import InputErrorRow
from casework.store.processes.linked_runs import LinkedRun
from casework.store.processes.lists import AnalyticsRow, Count, TransactionRow
from casework.store.processes.monitors import MonitorRow, RoundRow
from casework.store.processes.task_steps import StepRow
from casework.store.processes.transactions import StageRow
from casework.store.processes.waiting_parents import Wait
from casework.values import Plain


def iso(duration: timedelta) -> str:
    """A duration as ISO 8601 writes it: PT1H30M10S."""
    seconds, rest = divmod(duration, timedelta(seconds=1))
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    last = seconds % 60
    fraction = f".{rest.microseconds:06}".rstrip("0") if rest else ""
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else ""]
    parts.append(f"{last}{fraction}S" if last or fraction or not (hours or minutes) else "")
    return f"PT{''.join(parts)}"


def configuration(found: Effective) -> dict[str, Plain]:
    """`process_shapes.MonitorConfiguration`."""
    made: dict[str, Plain] = {}
    for name, source in found.sources.items():
        value = getattr(found.config, name)
        made[name] = {"value": iso(value) if isinstance(value, timedelta) else value, "source": str(source)}
    return {**made, "ignored": [str(each) for each in found.ignored]}


def monitor(
    line: Line, row: MonitorRow | None, life: MonitorLife | None, found: Effective, *, reached: bool
) -> dict[str, Plain]:
    """`process_shapes.Monitor`; `life` None: it has none, or the engine was not `reached`."""
    standing = None if life is None else life.standing
    state = standing.state if standing else None
    loops = row.completed_loops if row else 0
    return {
        "process": line.process.name,
        "monitor_class": line.process.monitor.monitor_class(),
        "state": _state(row, life, reached=reached),
        "how": life.how if life else None,
        "stopped": bool(row and row.stopped),
        "since": when(life.since) if life else None,
        "ended_at": when(life.ended) if life else None,
        "completed_loops": state.completed_loops if state else loops,
        "last_polling_time": when(row.last_polling_time) if row else None,
        "next_wake": when(standing.next_wake) if standing else None,
        "rounds": standing.rounds if standing else None,
        "claimed": standing.claimed if standing else None,
        "configuration": configuration(found),
    }


def _state(row: MonitorRow | None, life: MonitorLife | None, *, reached: bool) -> str:
    if not reached:
        return "unknown"
    if life is None:
        return "ended" if row else "never_started"  # the engine forgets an ended life after a while
    return "running" if life.open else "ended"


def monitor_round(row: RoundRow) -> dict[str, Plain]:
    """`process_shapes.MonitorRound`."""
    counts = ("claimed", "trays", "taken_in", "repeated", "bad", "failure", "loop_record", "stopped", "polled", "round")
    return {"life": str(row.life), "at": when(row.at), **{name: getattr(row, name) for name in counts}}


def refused(row: InputErrorRow) -> dict[str, Plain]:
    """`process_shapes.RefusedEntity`."""
    return {
        "natural_key": row.natural_key,
        "type": str(row.type),
        "code": row.code,
        "severity": str(row.severity),
        "short": row.short_text,
        "full": row.full_text,
        "times": row.times,
        "first_at": when(row.first_at),
        "last_at": when(row.last_at),
    }


def process(line: Line, counts: Iterable[Count], of_monitor: Plain) -> dict[str, Plain]:
    """`process_shapes.Process`."""
    made = line.process
    finalizer = None if made.finalizer is None else {"expects": made.finalizer.expects, "sets": made.finalizer.sets}
    return {
        "name": made.name,
        "tasks": [task(spec) for spec in line.specs.values()],
        "finalizer": finalizer,
        "tray_size": made.tray_size,
        "max_trays": made.room,
        "handles_errors": line.handles_errors,
        "counts": [count(each) for each in counts],
        "monitor": of_monitor,
        "declared_schedule": None if made.schedule is None else declared(made.schedule),
    }


def declared(made: Schedule) -> Plain:
    """`process_shapes.DeclaredSchedule`."""
    durations = {name: iso(getattr(made, name)) for name in ("offset", "jitter", "catch_up")}
    every = None if made.every is None else iso(made.every)
    return {"cron": list(made.cron), "zone": made.zone, "every": every, "overlap": str(made.overlap), **durations}


def task(spec: TaskSpec) -> dict[str, Plain]:
    """`process_shapes.ProcessTask`."""
    made: dict[str, Plain] = {"name": spec.name, "kind": str(spec.kind), "version": spec.version}
    return {**made, "max_per_second": spec.max_per_second}


def count(row: Count) -> dict[str, Plain]:
    """`process_shapes.StatusCount`."""
    counted = {"transactions": row.transactions, "claimed": row.claimed}
    return {"status": row.status, **counted, "oldest": when(row.oldest)}


def join_wait(row: Wait | None, family: Family) -> Plain:
    """`process_shapes.JoinWait`, or null."""
    if row is None:
        return None
    missing: list[Plain] = [str(child.uuid) for child in family.away]
    return {"process": row.process, "task": row.task, "since": when(row.since), "missing": missing}


def schedule(found: ScheduleStanding | None, wanted: Schedule | None) -> Plain:
    """`process_shapes.ProcessSchedule`, or null; `wanted` is the one that is declared."""
    if found is None:
        return None
    now = wanted is not None and found.declared == wanted.digest()
    source = "declared" if now else "outdated" if found.declared else "by_hand"
    return {
        "source": source,
        "paused": found.paused,
        "note": found.note,
        "next_starts": [when(each) for each in found.next_starts],
    }


def transaction(row: TransactionRow) -> dict[str, Plain]:
    """`process_shapes.Transaction`."""
    ids = ("uuid", "parent_uuid", "root_uuid", "cloned_from", "claim_id")
    instants = ("due_time", "start_time", "end_time", "updated_at")
    plain = (
        "status", "status_before_error", "process", "task", "natural_key", "business_key", "priority", "data",
        "skip_until", "straight_through", "by_hand",
    )  # fmt: skip
    return {
        **{name: None if (value := getattr(row, name)) is None else str(value) for name in ids},
        **{name: when(getattr(row, name)) for name in instants},
        **{name: getattr(row, name) for name in plain},
    }


def stage(row: StageRow) -> dict[str, Plain]:
    """`process_shapes.Stage`."""
    claim = None if row.claim_id is None else str(row.claim_id)
    parts = {"before": row.before, "after": row.after, "process": row.process, "by": row.made_by}
    return {**parts, "claim_id": claim, "at": when(row.at)}


def step(row: StepRow) -> dict[str, Plain]:
    """`process_shapes.TaskStep`."""
    names = ("process", "task", "path", "kind", "task_version", "state", "attempt", "result", "error")
    ids = {"step_id": str(row.step_id), "claim_id": str(row.claim_id)}
    times = {"started_at": when(row.started_at), "ended_at": when(row.ended_at)}
    return {**ids, **{name: getattr(row, name) for name in names}, **times}


def error(entity: ErrorEntity) -> dict[str, Plain]:
    """`process_shapes.TransactionError`."""
    names = ("code", "short", "full", "process", "task", "attempt")
    kinds = {"uuid": str(entity.uuid), "type": str(entity.type), "severity": str(entity.severity)}
    times = {"started": when(entity.started), "failed": when(entity.failed)}
    return {**kinds, **{name: getattr(entity, name) for name in names}, **times}


def linked_run(row: LinkedRun) -> dict[str, Plain]:
    """`process_shapes.LinkedRun`."""
    return {"run_id": str(row.run_id), "task": row.task, "status": row.status, "at": when(row.at)}


def analytics(row: AnalyticsRow | None) -> Plain:
    """`process_shapes.Analytics`, or null."""
    if row is None:
        return None
    names = ("seconds", "stage_times", "straight_through", "by_hand", "errors", "cost")
    return {name: getattr(row, name) for name in names}
