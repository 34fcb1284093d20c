"""Switching traces on and off: the standard variables, and what is said where they do not hold."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest

from casework.errors import SettingsError
from casework.settings import Secret, Settings, TelemetrySettings
from casework.telemetry.sampling import NAMES, RunRatio, sampler_of
from casework.telemetry.silence import OncePerMinute
from casework.telemetry.start import start_tracing, wanted

ENDPOINT = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("environ", "on"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{ENDPOINT}/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, "OTEL_SDK_DISABLED": "True"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, "OTEL_SDK_DISABLED": "no"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "nonsense"}, False),
    ],
)
def test_an_endpoint_switches_traces_on(environ: dict[str, str], on: bool) -> None:
    settings = Settings.load(environ).telemetry
    assert wanted(settings) is on
    if not on:
        assert start_tracing(settings, "x") is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"endpoint": "127.0.0.1:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT is no address .* like http://127.0.0.1:4318"),
        ({"endpoint": "ftp://u:hidden-word@x"}, "no address of a collector"),
        ({"endpoint": "http://"}, "no address"),
        ({"traces_endpoint": "http://x:99999/"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is no address"),
        ({"endpoint": ENDPOINT, "protocol": "grpc"}, "'grpc'.*http/protobuf.*4318"),
        ({"endpoint": ENDPOINT, "sampler": "often"}, "OTEL_TRACES_SAMPLER is 'often'.*parentbased_always_on"),
        ({"endpoint": ENDPOINT, "sampler": "traceidratio", "sampler_arg": "2"}, "from 0 to 1"),
        ({"endpoint": ENDPOINT, "sampler": "traceidratio", "sampler_arg": "nan"}, "from 0 to 1"),
        ({"endpoint": ENDPOINT, "resource_attributes": "novalue"}, "name=value"),
        ({"endpoint": ENDPOINT, "headers": Secret("hidden-word")}, "OTEL_EXPORTER_OTLP_HEADERS .* name=value"),
    ],
)
def test_what_does_not_hold_is_told_and_no_secret_with_it(given: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        start_tracing(TelemetrySettings(**given), "x")
    assert "hidden-word" not in str(refused.value)


def test_without_the_extra_the_error_names_it() -> None:
    """Traces asked for and packages absent: what to install, and how to do without."""
    program = (
        "import sys\n"
        "sys.modules['opentelemetry.sdk'] = None\n"
        "from casework.settings import TelemetrySettings\n"
        "from casework.telemetry.start import start_tracing\n"
        f"try: start_tracing(TelemetrySettings(endpoint={ENDPOINT!r}), 'x')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("SettingsError OTEL_EXPORTER_OTLP_ENDPOINT is set")
    assert "casework[telemetry]" in done.stdout
    assert "OTEL_SDK_DISABLED=true" in done.stdout


def test_off_imports_no_sdk() -> None:
    """Worker and API load without OpenTelemetry's SDK."""
    program = (
        "import sys\n"
        "for name in ('opentelemetry.sdk', 'opentelemetry.exporter'): sys.modules[name] = None\n"
        "import casework.durable.worker, casework.api\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_sampler_of_the_standard_is_known() -> None:
    for name in NAMES:
        assert sampler_of(name, "0.5") is not None


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_share_of_runs_is_that_share(ratio: float) -> None:
    """Ids of runs are UUIDs, whose fixed bits must not decide which run is recorded."""
    sampler = RunRatio(ratio)
    chosen = sum(sampler.should_sample(None, uuid4().int, "run").decision.value > 0 for _ in range(4000))
    assert abs(chosen / 4000 - ratio) < 0.05


def test_a_collector_that_is_away_is_told_once_and_without_its_address() -> None:
    once = OncePerMinute("away")
    made = [logging.LogRecord("x", logging.ERROR, "f", 1, "http://u:hidden-word@x %s", ("y",), None) for _ in range(3)]
    assert [once.filter(each) for each in made] == [True, False, False]
    assert made[0].getMessage() == "away"
