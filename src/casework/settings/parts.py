"""The settings of each part. Under each field: what it is and its unit, its default, and why."""

# ruff: noqa: RUF009  # `variable` is `dataclasses.field` with a name: it makes no shared value

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from casework.errors import SettingsError
from casework.settings.secret import Secret
from casework.settings.variables import variable

POSTGRES = ("postgresql://", "postgres://")
HTTP = ("http://", "https://")


@dataclass(frozen=True)
class DatabaseSettings:
    """PostgreSQL."""

    url: Secret | None = variable("CASEWORK_DATABASE_URL", prefixes=POSTGRES)
    """URL of the database as API and workers use it. Default: none, then the server of the local stack is used. A
    secret, since it holds a password."""

    admin_url: Secret | None = variable("CASEWORK_ADMIN_DATABASE_URL", prefixes=POSTGRES)
    """URL of the same database as its owner, for `migrate` and `token`. Default: CASEWORK_DATABASE_URL, which is
    enough where one login owns everything."""

    policy_url: Secret | None = variable("CASEWORK_POLICY_DATABASE_URL", prefixes=POSTGRES)
    """URL of the same database as the policy's owner, for `policy load`. Default: the owner's URL. Its own, because
    whoever runs agents must not be able to write policy."""

    pool_min_size: int = variable("CASEWORK_DATABASE_POOL_MIN", 1, at_least=0, at_most=1000)
    """Connections each process keeps open. Default 1: the first query after a pause need not wait for a login."""

    pool_max_size: int = variable("CASEWORK_DATABASE_POOL_MAX", 10, at_least=1, at_most=1000)
    """Most connections of one process. Default 10: no connection is held while a model, a tool or a person is waited
    for, so ten serve some hundred steps in flight, and a server's 100 still allow several processes."""

    def runtime_dsn(self) -> str:
        """The URL for API and workers.

        Raises:
            SettingsError: none is set.
        """
        if self.url is None:
            raise SettingsError(
                "No database is named. Start one with 'casework dev', or set CASEWORK_DATABASE_URL.",
                field="CASEWORK_DATABASE_URL",
            )
        return self.url.reveal()

    def owner_dsn(self) -> str:
        """The URL for migrations and tokens: the owner's, else the runtime's. Raises as `runtime_dsn` does."""
        return self.admin_url.reveal() if self.admin_url else self.runtime_dsn()

    def policy_dsn(self) -> str:
        """The URL for loading policy: the policy owner's, else the owner's. Raises as `runtime_dsn` does."""
        return self.policy_url.reveal() if self.policy_url else self.owner_dsn()


@dataclass(frozen=True)
class TemporalSettings:
    """Temporal, by the variables that all its tools know, and the task queue."""

    address: str | None = variable("TEMPORAL_ADDRESS")
    """Host and port of the frontend. Default: none, then the server of the local stack is used."""

    namespace: str | None = variable("TEMPORAL_NAMESPACE")
    """Namespace of all runs. Default: `default`, or the profile's; one namespace serves all tenants."""

    api_key: Secret | None = variable("TEMPORAL_API_KEY")
    """Key for Temporal Cloud; switches TLS on. Default: none."""

    tls: bool | None = variable("TEMPORAL_TLS")
    """TLS on or off. Default: on with an API key or a certificate, else off, as the local server speaks none."""

    tls_server_name: str | None = variable("TEMPORAL_TLS_SERVER_NAME")
    """Name expected in the server's certificate. Default: the host of the address."""

    tls_server_ca_cert_path: Path | None = variable("TEMPORAL_TLS_SERVER_CA_CERT_PATH")
    """File with the authority that signed the server's certificate. Default: the system's authorities."""

    tls_client_cert_path: Path | None = variable("TEMPORAL_TLS_CLIENT_CERT_PATH")
    """File with our certificate, for mutual TLS. Default: none."""

    tls_client_key_path: Path | None = variable("TEMPORAL_TLS_CLIENT_KEY_PATH")
    """File with the key of our certificate. Default: none."""

    profile: str | None = variable("TEMPORAL_PROFILE")
    """Profile to take from Temporal's configuration file. Default: none, and then no file in the home folder is read,
    so that a run here depends on nothing out of sight."""

    config_file: Path | None = variable("TEMPORAL_CONFIG_FILE")
    """Temporal's configuration file. Default: none; with a profile, the file in the home folder."""

    task_queue: str = variable("CASEWORK_TASK_QUEUE", "casework")
    """Queue that joins API and workers. Default `casework`; two releases side by side in one namespace need two."""


@dataclass(frozen=True)
class HistorySettings:
    """What runs write into the engine's histories. All processes of one namespace need the same."""

    roll_over_events: int = variable("CASEWORK_ROLL_OVER_EVENTS", 4_000, at_least=20, at_most=20_000)
    """Events after which a run of a graph goes on as a new history, when nothing is in flight. Default 4,000: a worker
    that has not seen the run reads them again in two to six seconds, and the engine allows ten. It counts for runs
    that start from then on."""

    roll_over_bytes: int = variable("CASEWORK_ROLL_OVER_BYTES", 4_000_000, at_least=100_000, at_most=20_000_000)
    """Bytes after which it does so as well. Default 4,000,000, as the engine itself advises."""

    blobs: str | None = variable("CASEWORK_BLOBS")
    """Where large values are kept, which histories then name and do not hold: a folder, or `s3://BUCKET/PREFIX`,
    `gs://` or `az://`, whose credentials and endpoint are read from the variables of the provider. Default: none, and
    then all lies in the history; the local stack uses `blobs` in its home folder. API, workers and command line must
    see the same. An object store needs the extra `objects`."""

    offload_bytes: int = variable("CASEWORK_OFFLOAD_BYTES", 128 * 1024, at_least=1024, at_most=1_500_000)
    """Values of more bytes go there. Default 131,072: few values are so large, and these weigh most. The
    engine refuses values of 2 MB."""

    keys: Path | None = variable("CASEWORK_PAYLOAD_KEYS")
    """File with the keys by which values are encrypted before they leave a process, made by `casework keys add`.
    Default: none, and then nothing is encrypted. Needs the extra `encryption`."""


@dataclass(frozen=True)
class WorkerSettings:
    """A worker process."""

    build: str | None = variable("CASEWORK_WORKER_BUILD")
    """Name of the build that this worker is of, such as `2026-12-01` or a commit. Default: none, and then any worker of
    the queue takes any run. With it, builds work side by side, and `casework builds make-current` says which of them
    gets new runs; until one is current, workers with a build get none."""

    runs: Literal["move_on", "stay"] = variable("CASEWORK_WORKER_RUNS", "move_on")
    """What open runs of graphs do when another build becomes current: `move_on` to it with their next step, or `stay`
    with the build that began them. Default `move_on`: a run may wait for weeks, and no build should have to. Runs of
    free trees always stay, since their code is yours. It matters only with CASEWORK_WORKER_BUILD."""

    max_activities: int = variable("CASEWORK_WORKER_MAX_ACTIVITIES", 100, at_least=1, at_most=10_000)
    """Model and tool calls that one worker has in flight; as many again for each task of a process that has a limit.
    Default 100: they wait for the network, not for the CPU."""

    max_stations: int = variable("CASEWORK_WORKER_MAX_STATIONS", 10, at_least=1, at_most=10_000)
    """Stations of trays that one worker works at in one moment, each on up to eight Transactions. Default 10, as many
    as it has connections; the other trays wait at the engine. Raise it where plain Tasks wait long for other systems
    and Transactions travel alone."""

    max_workflow_tasks: int = variable("CASEWORK_WORKER_MAX_WORKFLOW_TASKS", 40, at_least=2, at_most=10_000)
    """Runs that one worker advances at one moment. Default 40: this is CPU work of a few milliseconds each."""

    cache_size: int = variable("CASEWORK_WORKER_CACHE_SIZE", 500, at_least=0, at_most=100_000)
    """Runs kept in memory between steps; a run that fell out is rebuilt from its history. Default 500: a run is some
    hundred kilobytes. 0 rebuilds at every step, which only tests want."""

    sticky_queue_timeout_s: float = variable("CASEWORK_STICKY_QUEUE_TIMEOUT", 1.0, at_least=0.1, at_most=60)
    """Seconds for which a run waits for the worker that has it in memory before another rebuilds it. Default 1, for
    the same 3 seconds; the engine's own default of 10 is felt after each kill."""

    graceful_stop_s: float = variable("CASEWORK_GRACEFUL_STOP", 10.0, at_least=0, at_most=3600)
    """Seconds that steps in flight get to end when a worker is told to stop. Default 10; what is cut off is taken up
    by another worker, safely but again."""

    metrics_address: str | None = variable("CASEWORK_WORKER_METRICS_ADDRESS")
    """Host and port at which a worker serves its own metrics to Prometheus, such as `127.0.0.1:9464`. Default: none,
    and then it serves none. Port 0 takes any free one and tells it in the log; of several workers on one machine each
    needs its own."""


@dataclass(frozen=True)
class ApiSettings:
    """The HTTP API: how it listens, and how commands reach it."""

    host: str = variable("CASEWORK_API_HOST", "127.0.0.1")
    """Address to listen on. Default 127.0.0.1: reachable from this machine alone until someone decides otherwise."""

    port: int = variable("CASEWORK_API_PORT", 8080, at_least=1, at_most=65535)
    """TCP port to listen on. Default 8080; the local stack takes another one where it is busy."""

    url: str | None = variable("CASEWORK_API_URL", prefixes=HTTP)
    """Where commands reach the API. Default: the local stack's."""

    token: Secret | None = variable("CASEWORK_TOKEN")
    """Bearer token of commands. Default: the token in the file `token` of the home folder, for the local stack only."""


@dataclass(frozen=True)
class ModelSettings:
    """Language models. Keys are read by the providers under their own names (OPENAI_API_KEY and so on)."""

    model: str | None = variable("CASEWORK_MODEL")
    """Model for every agent instead of the one its manifest names, as `provider:model`, such as `openai:gpt-4o-mini`.
    Default: none. For trying another model on everything without editing manifests."""

    base_url: str | None = variable("CASEWORK_MODEL_BASE_URL", prefixes=HTTP)
    """Endpoint that speaks the OpenAI protocol. Default: the provider's own."""

    timeout_s: float = variable("CASEWORK_MODEL_TIMEOUT", 55.0, at_least=0.1, at_most=59)
    """Seconds for one answer. Default 55, at most 59: the attempt as a whole has 60, and the reason should be ours."""

    connect_timeout_s: float = variable("CASEWORK_MODEL_CONNECT_TIMEOUT", 10.0, at_least=0.1, at_most=59)
    """Seconds to reach the endpoint. Default 10: an unreachable host should not use up the attempt."""


@dataclass(frozen=True)
class PolicySettings:
    """Governed policy."""

    fallback: Literal["fail_closed", "fixture"] = variable("CASEWORK_POLICY_FALLBACK", "fail_closed")
    """What happens where no policy row can be read: `fail_closed` ends the run, `fixture` uses the shipped limits and
    records that it did. Default `fail_closed`: limits that nobody set must not decide about money."""


@dataclass(frozen=True)
class ProcessSettings:
    """Business processes."""

    monitors: Path | None = variable("CASEWORK_MONITORS")
    """File with the JSON configuration of Monitors. Default: none, and then the App's own counts, if it brings one. All
    workers of one task queue need the same."""

    sleep_floor: Literal["default", "control-tower"] = variable("CASEWORK_SLEEP_FLOOR", "default")
    """Shortest sleep of a Monitor, by profile: `default` is 1 second, `control-tower` 60, for a platform that lets
    nothing run more often. Default `default`. A shorter configured sleep is raised to it, and told."""


@dataclass(frozen=True)
class AppSettings:
    """The application and its folder."""

    reference: str | None = variable("CASEWORK_APP")
    """The application as `package.module:name`. Default: `casework.toml` in the working folder."""

    home: Path = variable("CASEWORK_HOME", Path(".casework"))
    """Folder of the local stack: data, logs, token. Default `.casework` in the working folder: one project, one
    stack."""


@dataclass(frozen=True)
class TelemetrySettings:
    """Traces, by the variables of OpenTelemetry. Its SDK reads further ones by itself."""

    endpoint: str | None = variable("OTEL_EXPORTER_OTLP_ENDPOINT")
    """Base address of a collector that speaks OTLP over HTTP, such as `http://127.0.0.1:4318`. Default: none, and then
    no traces are made. Needs the extra `telemetry`."""

    traces_endpoint: str | None = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    """Whole address for traces, which goes before the base address. Default: the base address and `/v1/traces`."""

    headers: Secret | None = variable("OTEL_EXPORTER_OTLP_HEADERS")
    """Headers for the collector, as `name=value,name=value`. Default: none. A secret, since it holds a key."""

    traces_headers: Secret | None = variable("OTEL_EXPORTER_OTLP_TRACES_HEADERS")
    """The same for traces alone. Default: those for all. A secret, as well."""

    protocol: str = variable("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    """How the collector is spoken to. Default `http/protobuf`, the only one here; another is an error at the start."""

    traces_protocol: str | None = variable("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
    """The same for traces alone, where other programs of this environment use another. Default: that for all."""

    exporter: str = variable("OTEL_TRACES_EXPORTER", "otlp")
    """`none` makes no traces, whatever else is set. Default `otlp`."""

    disabled: str | None = variable("OTEL_SDK_DISABLED")
    """`true` makes no traces, whatever else is set. Default: none, which means false."""

    service_name: str | None = variable("OTEL_SERVICE_NAME")
    """Name of the process in traces. Default: `casework-api` and `casework-worker`."""

    resource_attributes: str | None = variable("OTEL_RESOURCE_ATTRIBUTES")
    """What else every span says about its process, as `name=value,name=value`. Default: none."""

    sampler: str = variable("OTEL_TRACES_SAMPLER", "parentbased_always_on")
    """Which traces are recorded: `always_on`, `always_off`, `traceidratio`, or one of these with `parentbased_` before
    it, which follows a caller that traces. Default `parentbased_always_on`: all runs are, if no caller says no."""

    sampler_arg: str | None = variable("OTEL_TRACES_SAMPLER_ARG")
    """Share of the traces that `traceidratio` records, from 0 to 1. Default: 1."""
