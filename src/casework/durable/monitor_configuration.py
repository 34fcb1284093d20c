"""The JSON configuration of Monitors: where it is read from, and what of it is not used."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from casework.app import App
from casework.errors import SettingsError
from casework.graph.problems import unknown
from casework.process.lines import Line
from casework.process.monitor_settings import JsonMonitors, read_monitors
from casework.settings import Settings


def json_monitors(app: App, settings: Settings) -> JsonMonitors:
    """What the file of the setting CASEWORK_MONITORS says, else what the App brings, else nothing.

    Raises:
        SettingsError: the file cannot be read, or is no JSON.
    """
    named = settings.processes.monitors
    if named is not None:
        return read_monitors(_content("CASEWORK_MONITORS", named))
    if app.monitors is None:
        return JsonMonitors()
    return read_monitors(app.monitors if isinstance(app.monitors, Mapping) else _content("App.monitors", app.monitors))


def unused(configured: JsonMonitors, lines: Iterable[Line]) -> Iterator[str]:
    """A line for each part of the configuration that has no effect: ignored, or for a class that heads no process."""
    classes = sorted({line.process.monitor.monitor_class() for line in lines})
    yield from map(str, configured.ignored)
    for name in configured.by_class:
        if name not in classes:
            yield f"monitors ({name}), field 'monitorClass': {unknown('Monitor', name, classes)} It has no effect."


def _content(origin: str, file: Path | Traversable) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(
            f'{origin} is {file}, which cannot be read as JSON: {error}. Write {{"monitors": [...]}} into it.',
            field=origin,
        ) from error
