"""How a Monitor is configured: a row of its own, the JSON configuration, defaults, in this order for each value.

A configuration that is not understood is never half used. An object with one unexpected field, or one bad value, is
ignored as a whole, and why is told (`Ignored`), so that a typo neither goes unnoticed nor mixes with defaults in a way
that nobody wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from casework.graph.durations import seconds_of
from casework.graph.problems import unknown
from casework.values import Plain

POLLING_INTERVAL = timedelta(seconds=60)
"""Time from poll to poll where none is configured; the sleep is then a quarter of the interval in force."""
SLEEP_FLOORS = {"default": timedelta(seconds=1), "control-tower": timedelta(seconds=60)}
"""Shortest sleep, by profile: a platform may let nothing run more often than every minute."""
_CLASS = "monitorClass"
_FIELDS = {
    "pollingInterval": "polling_interval",
    "sleepTime": "sleep_time",
    "maxLoops": "max_loops",
    "maxRunningTime": "max_running_time",
}
VALUES = tuple(_FIELDS.values())


class Source(StrEnum):
    """Where a value in force comes from."""

    ROW = "row"
    JSON = "json"
    DEFAULT = "default"
    FLOOR = "floor"
    """The configured sleep is shorter than the platform allows."""


@dataclass(frozen=True)
class Ignored:
    """A part of a configuration that is not used. `place` is `monitors[2]` or `row`, `field` what is at fault there."""

    place: str
    monitor_class: str | None
    field: str
    reason: str

    def __str__(self) -> str:
        """One line for a log, a terminal or a page."""
        of = f" ({self.monitor_class})" if self.monitor_class else ""
        at = f", field {self.field!r}" if self.field else ""
        return f"{self.place}{of}{at}: {self.reason} The whole of it is ignored."


@dataclass(frozen=True)
class MonitorValues:
    """What one source says; None where it says nothing."""

    polling_interval: timedelta | None = None
    sleep_time: timedelta | None = None
    max_loops: int | None = None
    max_running_time: timedelta | None = None


@dataclass(frozen=True)
class MonitorConfig:
    """The values in force. No `max_loops` or `max_running_time` is no limit."""

    polling_interval: timedelta
    sleep_time: timedelta
    max_loops: int | None = None
    max_running_time: timedelta | None = None


@dataclass(frozen=True)
class Effective:
    """The values in force, the source of each by its name, and what was ignored on the way."""

    config: MonitorConfig
    sources: Mapping[str, Source]
    ignored: tuple[Ignored, ...] = ()


@dataclass(frozen=True)
class JsonMonitors:
    """The `monitors` of a JSON configuration: what holds, by class, and what is ignored."""

    by_class: Mapping[str, MonitorValues] = field(default_factory=dict)
    ignored: tuple[Ignored, ...] = ()


def read_monitors(configuration: Plain) -> JsonMonitors:
    """The array `monitors` at the root of a JSON configuration, one object for each Monitor class.

    Nothing is raised: what does not hold is among `ignored`, with the field that is at fault. Of two objects for one
    class the first counts.
    """
    found = configuration.get("monitors", []) if isinstance(configuration, dict) else None
    if not isinstance(found, list):
        at = "monitors" if isinstance(configuration, dict) else "configuration"
        return JsonMonitors(ignored=(Ignored(at, None, "", 'it must be {"monitors": [{...}, ...]}.'),))
    made: dict[str, MonitorValues] = {}
    ignored: list[Ignored] = []
    for number, each in enumerate(found):
        read = _object(f"monitors[{number}]", each, made)
        if isinstance(read, Ignored):
            ignored.append(read)
        else:
            made[each[_CLASS]] = read
    return JsonMonitors(made, tuple(ignored))


def read_row(monitor_class: str, row: Mapping[str, Any]) -> MonitorValues | Ignored:
    """What a row of `monitor_configuration` says: columns by name, NULL says nothing, others are not read."""
    return _values("row", monitor_class, {name: (name, row.get(name)) for name in VALUES})


def effective(
    monitor_class: str,
    *,
    row: Mapping[str, Any] | None = None,
    json: JsonMonitors | None = None,
    floor: timedelta = SLEEP_FLOORS["default"],
) -> Effective:
    """The values in force for a Monitor class: for each the row's, else the JSON's, else the default.

    A sleep below `floor` is raised to it. Of what was ignored, that of this class and that of no class is told.
    """
    told = [each for each in (json.ignored if json else ()) if each.monitor_class in (None, monitor_class)]
    layers: list[tuple[Source, MonitorValues]] = []
    if row is not None:
        read = read_row(monitor_class, row)
        if isinstance(read, Ignored):
            told.append(read)
        else:
            layers.append((Source.ROW, read))
    if json is not None and monitor_class in json.by_class:
        layers.append((Source.JSON, json.by_class[monitor_class]))
    values, sources = _merged(layers)
    polling = values.get("polling_interval") or POLLING_INTERVAL
    sleep = values.get("sleep_time") or polling / 4
    if sleep < floor:
        sleep, sources["sleep_time"] = floor, Source.FLOOR
    config = MonitorConfig(polling, sleep, values.get("max_loops"), values.get("max_running_time"))
    return Effective(config, sources, tuple(told))


def _merged(layers: Iterable[tuple[Source, MonitorValues]]) -> tuple[dict[str, Any], dict[str, Source]]:
    values: dict[str, Any] = {}
    sources = dict.fromkeys(VALUES, Source.DEFAULT)
    for source, layer in layers:
        for name in VALUES:
            if name not in values and (value := getattr(layer, name)) is not None:
                values[name], sources[name] = value, source
    return values, sources


def _object(place: str, found: Plain, made: Mapping[str, MonitorValues]) -> MonitorValues | Ignored:
    if not isinstance(found, dict):
        return Ignored(place, None, "", f"it is {found!r:.60}, not an object.")
    name = found.get(_CLASS)
    if not isinstance(name, str) or not name.strip():
        return Ignored(place, None, _CLASS, "it names no Monitor class. Write the name of one.")
    for key in found:
        if key != _CLASS and key not in _FIELDS:
            what = unknown("field", key, (_CLASS, *_FIELDS))
            return Ignored(place, name, key, f"{what}{'' if what.endswith('?') else ' Remove it.'}")
    if name in made:
        return Ignored(place, name, _CLASS, "the class has an object already, which counts. Remove one.")
    return _values(place, name, {own: (key, found.get(key)) for key, own in _FIELDS.items()})


def _values(place: str, monitor_class: str, found: Mapping[str, tuple[str, Any]]) -> MonitorValues | Ignored:
    made: dict[str, Any] = {}
    for name, (key, value) in found.items():
        try:
            made[name] = None if value is None else _count(value) if name == "max_loops" else _duration(value)
        except ValueError as error:
            return Ignored(place, monitor_class, key, str(error))
    return MonitorValues(**made)


def _count(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(f"{value!r:.60} is no number of loops. Write a whole number from 1, or leave it out.")
    return value


def _duration(value: Any) -> timedelta:
    """An ISO-8601 duration above zero. Years and months are none: they have no fixed length."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.60} is no duration. Write ISO 8601 as in PT15S, PT1H30M10S or P1D.")
    try:
        made = timedelta(seconds=float(seconds_of(value)))
    except ValueError:
        made = timedelta(0)
    if made <= timedelta(0):
        raise ValueError(
            f"{value!r:.60} is no duration above zero in weeks, days, hours, minutes and seconds. "
            "Write ISO 8601 as in PT15S, PT1H30M10S or P1D."
        )
    return made
