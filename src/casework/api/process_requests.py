"""The shapes of requests about business processes."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from casework.api.requests import Body, Instant, Short
from casework.errors import FieldsError
from casework.graph.durations import seconds_of
from casework.process.lines import BusinessProcess
from casework.process.schedules import Overlap, Schedule


def _duration(value: object) -> timedelta:
    if not isinstance(value, str):
        raise ValueError("write ISO 8601 as in PT15M or P1DT12H")
    return timedelta(seconds=float(seconds_of(value)))


Duration = Annotated[
    timedelta, BeforeValidator(_duration), Field(json_schema_extra={"format": "duration", "type": "string"})
]
"""ISO 8601, as in PT15M or P1DT12H."""
Status = Short


class ScheduleProcess(Body):
    """When a process starts: `every` so often, or by `cron` in `zone`; or as the application has `declared`."""

    declared: bool = Field(False, description="As BusinessProcess(schedule=...) says; goes with no other field.")

    every: Duration | None = None
    offset: Duration | None = Field(None, description="Of an interval: from 0, less than `every`.")
    cron: list[Short] = Field(default_factory=list, max_length=20, description="Five fields, or names like @daily.")
    zone: Short | None = Field(None, description="IANA name of the zone in which `cron` is read.")
    jitter: Duration | None = Field(None, description="Longest random delay of a start.")
    overlap: Overlap = Field(Overlap.SKIP, description="What a start does while the one before still runs.")
    catch_up: Duration | None = Field(None, description="How long after its time a start is still made; PT1H.")

    def schedule(self, process: BusinessProcess) -> Schedule:
        """The same as data for the engine.

        Raises:
            FieldsError: `declared` stands beside another field, or the process declares none.
            ProcessDeclarationError: a field does not hold, or two do not go together.
        """
        if self.declared:
            return self._declared(process)
        given = {name: getattr(self, name) for name in ("offset", "jitter", "catch_up")}
        more = {name: value for name, value in given.items() if value is not None}
        return Schedule(cron=tuple(self.cron), zone=self.zone, every=self.every, overlap=self.overlap, **more)

    def _declared(self, process: BusinessProcess) -> Schedule:
        if process.schedule is not None and self.model_fields_set == {"declared"}:
            return process.schedule
        message = f"process {process.name!r} declares no schedule; give `every` or `cron`"
        if process.schedule is not None:
            message = "goes with no other field; leave the others out"
        raise FieldsError(f"declared: {message}.", [{"field": "declared", "message": message}])


def _above_zero(text: str) -> str:
    if not seconds_of(text):
        raise ValueError("is no time; give a duration above zero")
    return text


Interval = Annotated[Short, AfterValidator(_above_zero), Field(json_schema_extra={"format": "duration"})]
"""ISO 8601 above zero, as in PT15S or PT1H30M."""


class ConfigureMonitor(Body):
    """Values of a Monitor class that go before all other configuration. What is left out stays; null is taken back."""

    polling_interval: Interval | None = None
    sleep_time: Interval | None = None
    max_loops: Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)] | None = None
    max_running_time: Interval | None = None

    def values(self) -> dict[str, str | int | None]:
        """What was sent, by column.

        Raises:
            FieldsError: nothing was.
        """
        sent = {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}
        if not sent:
            message = f"name at least one of {', '.join(type(self).model_fields)}"
            raise FieldsError(f"Nothing to configure: {message}.", [{"field": "polling_interval", "message": message}])
        return sent


class AddTransaction(Body):
    """Put a Transaction in. The same `natural_key` is the same Transaction."""

    data: dict[str, Any] = Field(default_factory=dict)
    status: Status | None = Field(None, description="One in which a Transaction can begin; needed where there are two.")
    natural_key: Annotated[Short | None, Field(description="What its source calls it.")] = None
    business_key: Annotated[Short | None, Field(description="What limits of concurrency count by.")] = None
    priority: Annotated[int, Field(ge=-(2**31), le=2**31 - 1, strict=True)] = 0
    due_time: Instant | None = None


class Clone(Body):
    """ABORTED, and a new one goes on in its place, in status `into`."""

    into: Status
    data: dict[str, Any] = Field(default_factory=dict, description="Put over the data of the new one.")


class Complete(Body):
    """It is COMPLETED by hand, and marked so, where the policy has this answer."""

    data: dict[str, Any] = Field(default_factory=dict, description="Put over its own data.")


class Retry(Body):
    """It goes on at a task, where the policy has this answer."""

    at: Short
    data: dict[str, Any] = Field(default_factory=dict, description="Put over its own data.")
