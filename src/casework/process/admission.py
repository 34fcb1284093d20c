"""Admission: a process that holds together becomes a Line; any other is refused, every problem named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from casework.errors import CaseworkError, ExpressionError, ProcessDeclarationError
from casework.graph import expressions
from casework.graph.problems import unknown
from casework.process.declaring import checked_label, spec_of
from casework.process.lines import END, FINALIZER, LOOP_RECORD, MONITOR, REPEAT, RULE_NAMES, BusinessProcess, Line, Rule
from casework.process.monitor_runners import MonitorRunner
from casework.process.monitors import InputMonitorTask, MonitorTask, TransactionMonitorTask
from casework.process.schedules import Schedule
from casework.process.statuses import DEFAULT_STATUSES, StatusSet
from casework.process.tasks import Kind

MAX_TRAY = 1000
"""Most Transactions in a tray."""
MAX_TRAYS = 100_000
"""Most trays of a process under way."""


def admit(process: BusinessProcess, statuses: StatusSet = DEFAULT_STATUSES) -> Line:
    """The process as a Line.

    Raises:
        ProcessDeclarationError: something does not hold; lists every problem with its remedy.
    """
    problems = list(_several(process)) or list(_parts(process))
    if not problems:  # the rest asks the parts
        line = Line(process, statuses)
        problems = [*_tray(line), *_statuses(line), *_rules(line)]
        if not problems:
            problems = [*_loop(line), *_ways(line)]
    if problems:
        raise ProcessDeclarationError("\n".join(f"Process {process.name!r}: {each}" for each in problems))
    return Line(process, statuses)


def admit_all(processes: Iterable[BusinessProcess], statuses: StatusSet = DEFAULT_STATUSES) -> dict[str, Line]:
    """Each process of a project as a Line, by name.

    Raises:
        ProcessDeclarationError: as `admit`, or two processes have one name, or two tasks of one name other limits;
            lists the problems of all.
    """
    lines: dict[str, Line] = {}
    problems: list[str] = []
    for process in processes:
        try:
            if process.name in lines:
                problems.append(f"Process {process.name!r}: the name is used twice. Rename one.")
            lines.setdefault(process.name, admit(process, statuses))
        except ProcessDeclarationError as error:
            problems.append(str(error))
    problems += _limits(lines.values())
    if problems:
        raise ProcessDeclarationError("\n".join(problems))
    return lines


def _limits(lines: Iterable[Line]) -> Iterator[str]:
    """Tasks of one name share one limit."""
    known: dict[str, tuple[str, float]] = {}
    for line in lines:
        for task, rate in line.limits.items():
            first, other = known.setdefault(task, (line.process.name, rate))
            if rate != other:
                yield (
                    f"Task {task!r} has max_per_second {other:g} in process {first!r} and {rate:g} in "
                    f"{line.process.name!r}. All tasks of a name share one limit: give both the same, or rename one."
                )


def _several(process: BusinessProcess) -> Iterator[str]:
    """The comma that a tuple of one is easily written without."""
    for name in ("tasks", "rules"):
        given: Any = getattr(process, name)
        if not isinstance(given, tuple | list):
            one = given.__name__ if isinstance(given, type) else type(given).__name__
            yield f"{name} is {one} alone. Give a tuple, which of one has a comma: {name}=({one},)."


def _parts(process: BusinessProcess) -> Iterator[str]:
    names: Counter[str] = Counter()
    try:
        checked_label("process", process.name)
    except ProcessDeclarationError as error:
        yield str(error)
    monitor: Any = process.monitor
    if not (isinstance(monitor, type) and issubclass(monitor, MonitorTask)):
        yield f"{monitor!r:.80} is no Monitor. Give a class that derives from MonitorTask."
    elif not (isinstance(monitor.runner_class, type) and issubclass(monitor.runner_class, MonitorRunner)):
        yield (
            f"Monitor {monitor.__name__} has no runner. Derive it from TransactionMonitorTask or InputMonitorTask, or "
            "give it a runner_class that derives from MonitorRunner."
        )
    schedule: Any = process.schedule
    if schedule is not None and not isinstance(schedule, Schedule):
        yield f"schedule is {schedule!r:.80}. Give a Schedule, as in half_days() or Schedule(every=...)."
    for cls in process.tasks:
        try:
            names[spec_of(cls).name] += 1
        except ProcessDeclarationError as error:
            yield str(error)
    for name in (name for name, count in names.items() if count > 1):
        yield f"task {name!r} stands in it twice. Rename one, or go back to it by a Rule."


def _tray(line: Line) -> Iterator[str]:
    size = line.process.tray_size
    if type(size) is not int or not 1 <= size <= MAX_TRAY:
        yield f"tray_size is {size!r:.60}. Give a whole number from 1 to {MAX_TRAY}."
        return
    most = line.process.max_trays
    if most is not None and (type(most) is not int or not 1 <= most <= MAX_TRAYS):
        yield f"max_trays is {most!r:.60}. Give a whole number from 1 to {MAX_TRAYS}, or None."
    per_key = line.process.max_per_key
    if per_key is not None and (type(per_key) is not int or per_key < 1):
        yield f"max_per_key is {per_key!r:.60}. Give a whole number from 1, or None for no limit."
    elif per_key is not None and issubclass(line.process.monitor, InputMonitorTask):
        yield (
            f"max_per_key is {per_key}, and Monitor {line.process.monitor.__name__} takes in what comes, whatever its "
            "key. Set it on the process that claims Transactions by status."
        )
    for spec in line.specs.values():
        if spec.alone and size != 1:
            yield (
                f"tray_size is {size}, and task {spec.name!r} is a {spec.kind} task: it can wait for days, and would "
                "hold the others of its tray. Set tray_size=1, or give the task a process of its own."
            )
        if spec.kind is Kind.ERROR and not line.handles_errors:
            yield f"task {spec.name!r} handles errors, and the Monitor emits none. Move it to the Error process."


def _statuses(line: Line) -> Iterator[str]:
    monitor, finalizer = line.process.monitor, line.process.finalizer
    wanted = ["status_to_set"]
    if issubclass(monitor, TransactionMonitorTask):
        wanted.insert(0, "status_to_monitor")
    missing = [name for name in wanted if not hasattr(monitor, name)]
    for name in missing:
        yield f"Monitor {monitor.__name__} has no {name}. Add a line like {name} = {line.statuses.working[0]!r}."
    if not missing:
        before = monitor.status_to_monitor if issubclass(monitor, TransactionMonitorTask) else None
        if before is None and not issubclass(monitor, InputMonitorTask):
            before = monitor.status_to_set  # where its Transactions come from, only its runner knows
        yield from _move(line.statuses, f"Monitor {monitor.__name__}", before, monitor.status_to_set, wanted)
    if finalizer is not None:
        yield from _move(line.statuses, "the Finalizer", finalizer.expects, finalizer.sets, ("expects", "sets"))
        known = (
            finalizer.expects in line.statuses.moves and not missing and monitor.status_to_set in line.statuses.moves
        )
        if known and not line.statuses.leads(monitor.status_to_set, finalizer.expects):
            yield (
                f"the Finalizer expects {finalizer.expects}, to which nothing leads from {monitor.status_to_set}, in "
                f"which Monitor {monitor.__name__} lets Transactions on. Let it expect that, or add the moves."
            )


def _move(statuses: StatusSet, who: str, before: str | None, after: str, fields: Iterable[str]) -> Iterator[str]:
    """What is wrong with a move that `who` makes; `fields` say by what it is set."""
    try:
        statuses.check(before, after)
    except ProcessDeclarationError as error:
        yield f"{who}: {error} It is what {' and '.join(fields)} say; a project's own statuses are `statuses=`."
    except CaseworkError as error:
        yield f"{who}: {error}"


def _rules(line: Line) -> Iterator[str]:
    sources = [name for name in line.stations if name not in (FINALIZER, END)]
    for rule in line.process.rules:
        place = f"the rule after {rule.after!r} when {rule.when!r}"
        if rule.after not in sources:
            yield f"{place}: {unknown('task', rule.after, sources)}"
        if rule.to not in line.stations:
            yield f"{place} leads to {rule.to!r}: {unknown('station', rule.to, line.stations)}"
        if rule.to == MONITOR and rule.after != MONITOR:
            yield f"{place} leads back to the Monitor. Only the loop record goes there; name a task."
        try:
            expressions.check(rule.when, RULE_NAMES)
        except ExpressionError as error:
            yield f"{place}: {error}"


def _loop(line: Line) -> Iterator[str]:
    try:
        goes = line.route(MONITOR, LOOP_RECORD)
    except ExpressionError as error:
        yield (
            f"the loop record fails at a Rule after the Monitor: {error} Put Rule('monitor', '{REPEAT}', 'monitor') "
            "before all others."
        )
        return
    if goes != MONITOR:
        yield (
            f"no Rule routes the loop record ({REPEAT}) back to the Monitor, which would run once only; it goes to "
            f"{goes!r}. Add Rule('monitor', '{REPEAT}', 'monitor') before the other rules."
        )


def _ways(line: Line) -> Iterator[str]:
    ways = {name: _following(line, name) for name in line.stations}
    reached = _closure(ways, MONITOR)
    for name in line.stations:
        if name not in reached and name != END:
            yield f"{_called(name)} is never reached: a Rule always leads past it. Take the Rule or the task away."
    for name in line.specs:
        if name in reached and END not in _closure(ways, name):
            yield f"task {name!r} has no way to the end: its Rules always lead back. Add one that leads on."


def _called(station: str) -> str:
    return "the Finalizer" if station == FINALIZER else f"task {station!r}"


def _following(line: Line, station: str) -> list[str]:
    """The stations that may follow, as far as the Rules can tell without a record."""
    if station == END:
        return []
    found: list[str] = []
    for rule in line.rules_after(station):
        found += [] if rule.when.strip() == "false" else [rule.to]
        if _always(rule):
            return found
    return [*found, line.behind(station)]


def _always(rule: Rule) -> bool:
    return rule.when.strip() in ("true", f"!{REPEAT}", f"{REPEAT} == false") and rule.to != MONITOR


def _closure(ways: dict[str, list[str]], start: str) -> set[str]:
    reached, fresh = {start}, [start]
    while fresh:
        following = [name for name in ways[fresh.pop()] if name not in reached]
        reached |= set(following)
        fresh += following
    return reached
