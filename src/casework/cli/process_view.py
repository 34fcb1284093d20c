"""Printing processes, Monitors and lists of Transactions; what a command sends about a process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import click

from casework.cli import exits
from casework.cli.durations import duration
from casework.cli.http import Api
from casework.cli.output import cell, emit_json, safe, table, when
from casework.graph.durations import seconds_of

BY_HAND = "stopped by hand"
_STATES = {
    "started": "Process {} is started.",
    "running": "Process {} runs already.",
    "stopping": "The Monitor of {} stops; what is in trays goes on.",
    "polling": "The Monitor of {} polls now.",
    "scheduled": "Process {} is scheduled.",
    "unscheduled": "Process {} has no schedule any more.",
    "unchanged": "Process {} had no schedule.",
}
_SOURCES = {"declared": "as declared", "outdated": "as declared before", "by_hand": "set by an operator"}
_STOPS = {
    "by_row": BY_HAND,
    "by_time": "its running time was over",
    "by_loops": "it has made all its loops",
    "by_rule": "a Rule did not lead back",
}
"""Why a Monitor ended."""


def path_of(kind: str, name: str, *more: str) -> str:
    """The path of a resource; a name is quoted as a whole."""
    return "/".join(("/v1", kind, quote(name, safe=""), *more))


def send(kind: str, name: str, verb: str, as_json: bool) -> int:
    """Send a message without a body, and print what became of it."""
    with Api.find() as api:
        receipt = api.post(path_of(kind, name, verb), {}).body
    emit_json(receipt) if as_json else print_receipt(receipt)
    return exits.OK


def print_receipt(receipt: Mapping[str, Any]) -> None:
    """What became of a message, in a sentence."""
    click.echo(_STATES[receipt["state"]].format(safe(receipt["process"])))


def print_processes(found: Mapping[str, Any]) -> None:
    """The table of processes; below it what is at none of them."""
    rows = [
        {
            "name": each["name"],
            "monitor": state(each["monitor"]),
            "polls": each["monitor"]["completed_loops"],
            "last": when(each["monitor"]["last_polling_time"]),
            "counts": counts(each["counts"]),
        }
        for each in found["items"]
    ]
    headings = {"name": "PROCESS", "monitor": "MONITOR", "polls": "POLLS", "last": "LAST POLL", "counts": "AT IT"}
    table(rows, headings, "The application has no business process.")
    if found["elsewhere"]:
        click.echo(f"At no process: {counts(found['elsewhere'])}")


def counts(found: Iterable[Mapping[str, Any]]) -> str:
    """Counts by status in words: `3 PROCESSING_IN_PROGRESS (2 in trays)`."""
    told = []
    for each in found:
        trays = f" ({each['claimed']} in trays)" if each["claimed"] else ""
        told.append(f"{each['transactions']} {each['status']}{trays}")
    return ", ".join(told)


def state(monitor: Mapping[str, Any]) -> str:
    """Where a Monitor stands, in a word or two."""
    named = str(monitor["state"]).replace("_", " ")
    if monitor["state"] == "ended" and monitor["how"] not in (None, "COMPLETED"):
        named = f"ended {monitor['how']}"
    return f"{named}, {BY_HAND}" if monitor["stopped"] and monitor["state"] != "never_started" else named


def print_process(found: Mapping[str, Any]) -> None:
    """One process in full."""
    click.echo(f"Process {found['name']}{' (handles errors)' if found['handles_errors'] else ''}")
    stations = " -> ".join(map(_station, found["tasks"])) or "no tasks"
    click.echo(f"tasks       {stations}")
    if found["finalizer"]:
        click.echo(f"finalizer   {found['finalizer']['expects']} -> {found['finalizer']['sets']}")
    click.echo(f"trays       of {found['tray_size']}, at most {found['max_trays']} at one time")
    click.echo(f"at it       {counts(found['counts']) or 'nothing'}")
    if (waits := found["waits"])["transactions"]:
        click.echo(f"waiting     {waits['transactions']} for children in other trays, since {when(waits['since'])}")
    print_monitor(found["monitor"])
    schedule = found["schedule"]
    if found["declared_schedule"]:
        click.echo(f"declares    {_declared(found['declared_schedule'])}")
    if schedule:
        starts = ", ".join(when(each) for each in schedule["next_starts"][:3])
        paused = f" (paused: {safe(schedule['note'] or '')})" if schedule["paused"] else ""
        click.echo(f"schedule    {_SOURCES[schedule['source']]}; next starts {starts or 'none'}{paused}")
    else:
        click.echo("schedule    none")


def _declared(found: Mapping[str, Any]) -> str:
    parts = [f"every {found['every']}"] if found["every"] else [f"cron {safe(each)!r}" for each in found["cron"]]
    parts += [f"in {safe(found['zone'])}"] if found["zone"] else []
    parts += [f"{name} {found[name]}" for name in ("offset", "jitter") if found[name] != "PT0S"]
    return ", ".join([*parts, f"overlap {found['overlap']}", f"catch-up {found['catch_up']}"])


def declaring(api: Api) -> list[str]:
    """The processes that declare a schedule."""
    return [each["name"] for each in api.get("/v1/processes")["items"] if each["declared_schedule"]]


def _station(task: Mapping[str, Any]) -> str:
    rate = task["max_per_second"]
    limit = "" if rate is None else f", at most {float(rate):g} a second"
    return f"{task['name']} ({task['kind']}{limit})"


def print_monitors(items: Sequence[Mapping[str, Any]]) -> None:
    """The table of Monitors."""
    rows = [
        {
            "process": each["process"],
            "class": each["monitor_class"],
            "state": state(each),
            "polls": each["completed_loops"],
            "last": when(each["last_polling_time"]),
            "configuration": _configuration(each["configuration"]),
        }
        for each in items
    ]
    headings = {
        "process": "PROCESS",
        "class": "CLASS",
        "state": "STATE",
        "polls": "POLLS",
        "last": "LAST POLL",
        "configuration": "CONFIGURATION",
    }
    table(rows, headings, "The application has no business process.")
    for line in dict.fromkeys(line for each in items for line in each["configuration"]["ignored"]):
        click.echo(f"Ignored: {safe(line)}", err=True)


def print_monitor(found: Mapping[str, Any]) -> None:
    """One Monitor; with its rounds where they are there."""
    click.echo(f"monitor     {found['monitor_class']}: {state(found)}")
    for name, text in (("since", "since"), ("ended_at", "until"), ("last_polling_time", "last poll")):
        if found[name]:
            click.echo(f"{text:<11} {when(found[name])}")
    click.echo(f"polls       {found['completed_loops']}")
    if found["next_wake"]:
        click.echo(f"next wake   {when(found['next_wake'])}")
    print_configuration(found["configuration"])
    for row in found.get("newest_rounds", ()):
        click.echo(f"round {row['round']:<5} {when(row['at'])}  {_round(row)}")
    _print_refused(found.get("newest_refused", ()))


def _print_refused(found: Sequence[Mapping[str, Any]]) -> None:
    for each in found:
        what = "a poll" if each["natural_key"] is None else cell(each["natural_key"])
        times = "" if each["times"] == 1 else f" {each['times']} times, first {when(each['first_at'])}"
        click.echo(
            f"refused     {when(each['last_at'])}  {what}{times}: {safe(each['code'])}: {cell(each['short'], 100)}"
        )


def print_configuration(found: Mapping[str, Any]) -> None:
    """The values in force, each with where it comes from, and what is ignored."""
    for name, each in found.items():
        if name != "ignored":
            value = "no limit" if each["value"] is None else each["value"]
            click.echo(f"  {name.replace('_', ' '):<17} {value} ({each['source']})")
    for line in found["ignored"]:
        click.echo(f"  ignored: {safe(line)}")


def _round(row: Mapping[str, Any]) -> str:
    names = ("claimed", "trays", "taken_in", "repeated", "bad")
    told = [f"{name.replace('_', ' ')} {row[name]}" for name in names if row[name]]
    told += [f"failed: {safe(row['failure'])}"] if row["failure"] else []
    told += [f"the last one: {_STOPS.get(row['stopped'], row['stopped'])}"] if row["stopped"] else []
    return ", ".join(told) or "nothing"


def _configuration(found: Mapping[str, Any]) -> str:
    parts = [
        f"{name.replace('_', ' ')} {each['value']} ({each['source']})"
        for name, each in found.items()
        if name != "ignored" and each["value"] is not None
    ]
    return ", ".join(parts)


def print_transactions(page: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """The table of Transactions, and how to see more; where there is none, by which options it was looked for."""
    headings = {
        "uuid": "TRANSACTION",
        "status": "STATUS",
        "process": "PROCESS",
        "task": "TASK",
        "natural_key": "KEY",
        "since": "SINCE",
    }
    given = {name: value for name, value in wanted.items() if value is not None and name not in ("limit", "cursor")}
    asked = "".join(f" --{name.replace('_', '-')} {safe(str(value))}" for name, value in given.items())
    none = f"There is no Transaction{f' with{asked}' if asked else ''}."
    table([{**row, "since": when(row["start_time"])} for row in page["items"]], headings, none)
    if page["next_cursor"]:
        click.echo(f"More with --cursor {page['next_cursor']}", err=True)


def schedules(
    names: Sequence[str],
    *,
    every: str | None,
    offset: str | None,
    stagger: bool,
    half_days: bool,
    cron: tuple[str, ...],
    zone: str | None,
    jitter: str | None,
    overlap: str | None,
    catch_up: str | None,
) -> dict[str, dict[str, Any]]:
    """The body of the schedule of each process.

    Raises:
        UsageError: options do not go together.
        InputError: a duration is none.
    """
    times = {"every": every, "offset": offset, "jitter": jitter, "catch_up": catch_up}
    body: dict[str, Any] = {
        name: duration(f"--{name.replace('_', '-')}", value) for name, value in times.items() if value is not None
    }
    body |= {name: value for name, value in (("zone", zone), ("overlap", overlap)) if value is not None}
    body |= {"cron": list(cron)} if cron else {}
    if half_days:
        if every or cron or stagger or overlap or catch_up:
            raise click.UsageError("--half-days says how often, and what overlaps. Leave the other options out.")
        body |= {"every": "PT12H", "overlap": "buffer_one", "catch_up": "PT12H"}
    if "every" not in body and "cron" not in body and not stagger:
        raise click.UsageError(
            "Say when: --every DURATION (as in --every PT10M), --cron EXPRESSION (as in --cron '30 6 * * 1-5'), "
            "--half-days, --declared, or --remove."
        )
    if stagger:
        return {name: {**body, "offset": shift} for name, shift in zip(names, _shifts(len(names), body), strict=True)}
    return dict.fromkeys(names, body)


def _shifts(count: int, body: Mapping[str, Any]) -> list[str]:
    from casework.process.schedules import staggered

    if "every" not in body or "offset" in body:
        raise click.UsageError("--stagger goes with --every, and finds each --offset by itself.")
    every = timedelta(seconds=float(seconds_of(body["every"])))
    return [f"PT{int(each.offset.total_seconds())}S" for each in staggered(count, every)]
