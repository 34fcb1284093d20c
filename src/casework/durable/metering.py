"""A worker's own metrics: one endpoint for Prometheus with the engine's figures and ours.

The engine's SDK serves it and counts task slots, latencies of tasks, the cache of runs. Ours are counted by an
interceptor around activities: attempts by operation and outcome with their seconds, and the attempts that met a
database that was away. Runs, tenants and paths are no labels: there are too many of them.
"""

from __future__ import annotations

import asyncio
import socket
import time
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.common import MetricMeter
from temporalio.exceptions import ApplicationError
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from casework.durable.contracts import CALL_MODEL, CALL_TOOL, PROJECT, RUN_SEGMENT, SWEEP
from casework.errors import SettingsError, StoreUnavailableError, UnreachableError

VARIABLE = "CASEWORK_WORKER_METRICS_ADDRESS"
OPERATIONS = {CALL_MODEL: "model", CALL_TOOL: "tool", PROJECT: "project", RUN_SEGMENT: "segment", SWEEP: "sweep"}
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Buckets of the time of an attempt: from a row written to the longest that an attempt may last."""
_TRIES = 5


def metrics_runtime(address: str) -> tuple[Runtime, str]:
    """The engine's runtime with its metrics served at `address`, and where that is: port 0 becomes a free one.

    Raises:
        SettingsError: the address is none.
        UnreachableError: it cannot be listened on.
    """
    host, port = _parsed(address)
    for tries_left in reversed(range(_TRIES)):
        shown = f"[{host}]" if ":" in host else host
        bound = f"{shown}:{port or _free_port(host)}"
        try:
            return Runtime(telemetry=_config(bound)), f"http://{bound}/metrics"
        except ValueError as error:
            # A free port may be taken by another in between; another one is free then.
            if port or not tries_left:
                raise UnreachableError(
                    f"{VARIABLE}={address}: it cannot be listened on ({error}). Each worker on one machine needs an "
                    "address of its own: name another port, or 0 for any free one."
                ) from None
    raise AssertionError("unreachable")


class Figures:
    """What is counted of activities."""

    def __init__(self, meter: MetricMeter) -> None:
        self._attempts = meter.create_counter("casework_attempts", "Attempts of activities, by operation and outcome")
        self._faults = meter.create_counter("casework_store_faults", "Attempts that met a database that was away")
        self._seconds = meter.create_histogram_timedelta(
            "casework_attempt_time", "Time of an attempt, by operation", "duration"
        )

    def attempt(self, operation: str, outcome: str, seconds: float) -> None:
        """An attempt is over."""
        self._attempts.add(1, {"operation": operation, "outcome": outcome})
        self._seconds.record(timedelta(seconds=seconds), {"operation": operation})
        if outcome == StoreUnavailableError.__name__:
            self._faults.add(1, {"operation": operation})


class MeteringInterceptor(Interceptor):
    """Counts the attempts of activities."""

    def __init__(self, meter: MetricMeter) -> None:
        self._figures = Figures(meter)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  # the SDK's name
        """Watch over attempts."""
        return _Metered(next, self._figures)


class _Metered(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, figures: Figures) -> None:
        super().__init__(inner)
        self._figures = figures

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  # the SDK's name
        began, outcome = time.monotonic(), "completed"
        try:
            result = await super().execute_activity(input)
            outcome = "told" if getattr(result, "state", None) == "FAILED" else "completed"
            return result
        except BaseException as error:
            outcome = _kind(error)
            raise
        finally:
            self._figures.attempt(_operation(), outcome, time.monotonic() - began)


def _operation() -> str:
    name = activity.info().activity_type
    return OPERATIONS.get(name, name)


def _kind(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return (isinstance(error, ApplicationError) and error.type) or type(error).__name__


def _config(address: str) -> TelemetryConfig:
    served = PrometheusConfig(
        bind_address=address,
        counters_total_suffix=True,
        unit_suffix=True,
        durations_as_seconds=True,
        histogram_bucket_overrides={"casework_attempt_time": SECONDS},
    )
    return TelemetryConfig(metrics=served, attach_service_name=False)


def _parsed(address: str) -> tuple[str, int]:
    """Host as an IP address, and port."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise _no_address(address, "")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _no_address(address, f" ({error})") from None
    return str(found[0][4][0]), int(port)


def _no_address(address: str, why: str) -> SettingsError:
    return SettingsError(
        f"{VARIABLE} is {address!r:.100}, which is no address to listen on{why}. Write host and port, like "
        "127.0.0.1:9464.",
        field=VARIABLE,
    )


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise UnreachableError(f"{VARIABLE}: {host} cannot be listened on ({error.strerror}).") from None
        return int(probe.getsockname()[1])
