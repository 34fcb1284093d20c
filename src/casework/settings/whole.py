"""All settings, read from the environment at once."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from casework.errors import SettingsError
from casework.settings.parts import (
    ApiSettings,
    AppSettings,
    DatabaseSettings,
    HistorySettings,
    ModelSettings,
    PolicySettings,
    ProcessSettings,
    TelemetrySettings,
    TemporalSettings,
    WorkerSettings,
)
from casework.settings.variables import read_part, variable_of, written_part

OURS = "CASEWORK_"

RESERVED = ("CASEWORK_TEST_", "CASEWORK_DRILL_")
"""Prefixes of what is no setting: tests' data and drills' fault points."""


@dataclass(frozen=True)
class Settings:
    """Every setting. Build it once with `load` and pass it on; vary a part with `dataclasses.replace`."""

    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    temporal: TemporalSettings = field(default_factory=TemporalSettings)
    histories: HistorySettings = field(default_factory=HistorySettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    models: ModelSettings = field(default_factory=ModelSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    processes: ProcessSettings = field(default_factory=ProcessSettings)
    app: AppSettings = field(default_factory=AppSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> Self:
        """Read all settings, from `os.environ` unless another mapping is given.

        Raises:
            SettingsError: a `CASEWORK_` variable is unknown (the nearest known name is given), a value is not valid,
                or two do not go together.
        """
        source = os.environ if environ is None else environ
        _refuse_unknown(source)
        whole = cls(**{name: read_part(part, source) for name, part in parts().items()})
        _require_pool_order(whole.database)
        return whole

    def as_environ(self) -> dict[str, str]:
        """The variables that make another process load the same settings. They hold secrets: show them to no one."""
        return {name: text for part in parts() for name, text in written_part(getattr(self, part)).items()}


def parts() -> dict[str, type]:
    """The parts by their name in `Settings`, in order."""
    return {
        "database": DatabaseSettings,
        "temporal": TemporalSettings,
        "histories": HistorySettings,
        "worker": WorkerSettings,
        "api": ApiSettings,
        "models": ModelSettings,
        "policy": PolicySettings,
        "processes": ProcessSettings,
        "app": AppSettings,
        "telemetry": TelemetrySettings,
    }


def variable_names() -> list[str]:
    """Every environment variable that is a setting."""
    return [variable_of(each).name for part in parts().values() for each in dataclasses.fields(part)]


def _refuse_unknown(source: Iterable[str]) -> None:
    known = variable_names()
    for name in sorted(source):
        if not name.startswith(OURS) or name in known or name.startswith(RESERVED):
            continue
        ours = [each.removeprefix(OURS) for each in known if each.startswith(OURS)]
        near = difflib.get_close_matches(name.removeprefix(OURS), ours, n=1)
        advice = f"Did you mean {OURS}{near[0]}?" if near else f"The settings are: {', '.join(known)}."
        raise SettingsError(f"The environment variable {name} is no setting. {advice} Else unset it.", field=name)


def _require_pool_order(database: DatabaseSettings) -> None:
    if database.pool_min_size > database.pool_max_size:
        raise SettingsError(
            f"CASEWORK_DATABASE_POOL_MIN is {database.pool_min_size} and CASEWORK_DATABASE_POOL_MAX is "
            f"{database.pool_max_size}. Make the first at most the second.",
            field="CASEWORK_DATABASE_POOL_MIN",
        )
