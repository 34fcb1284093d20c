"""The connection to Temporal that settings describe."""

from __future__ import annotations

import asyncio

from temporalio.client import Client
from temporalio.envconfig import ClientConfigProfile, ClientConnectConfig
from temporalio.runtime import Runtime

from casework.durable.converter import data_converter
from casework.durable.tracing.client import RequestInterceptor
from casework.errors import SettingsError, UnreachableError
from casework.settings import Settings, TemporalSettings

CONNECT_TIMEOUT_S = 10.0
DEFAULT_NAMESPACE = "default"


async def connect(
    settings: Settings,
    *,
    lazy: bool = False,
    timeout_s: float = CONNECT_TIMEOUT_S,
    runtime: Runtime | None = None,
) -> Client:
    """A client for the server in `settings`, with the project's data converter. A lazy one connects at its first call.

    `runtime` is the SDK's own, where a worker serves metrics; else the process's default.

    Raises:
        SettingsError: no address is known; or profile, file, certificate or key file cannot be read.
        UnreachableError: nobody answers at the address within `timeout_s` seconds, or not in TLS as configured.
    """
    config = connect_config(settings.temporal)
    address = config.get("target_host", "")
    converter = data_converter(settings.histories)
    connecting = Client.connect(
        **config, data_converter=converter, lazy=lazy, interceptors=[RequestInterceptor()], runtime=runtime
    )
    try:
        return await asyncio.wait_for(connecting, timeout_s)
    except (RuntimeError, TimeoutError, ValueError) as refused:
        raise UnreachableError(
            f"No Temporal server answers at {address} ({refused or 'no answer in time'}). "
            "Start one with 'casework dev', or set TEMPORAL_ADDRESS, TEMPORAL_TLS and TEMPORAL_API_KEY to where it is."
        ) from refused


def connect_config(settings: TemporalSettings) -> ClientConnectConfig:
    """What the SDK needs to connect, by its own rules for the standard variables.

    Raises:
        SettingsError: no address is known, or profile, file or certificate cannot be read.
    """
    named_file = bool(settings.profile or settings.config_file)
    try:
        if settings.config_file and not settings.config_file.is_file():
            raise FileNotFoundError(f"TEMPORAL_CONFIG_FILE names {settings.config_file}, which is no file")
        profile = ClientConfigProfile.load(
            settings.profile,
            config_source=settings.config_file,
            disable_file=not named_file,
            override_env_vars=_as_variables(settings),
        )
        config = profile.to_client_connect_config()
    except (RuntimeError, ValueError, OSError) as refused:
        raise SettingsError(
            f"The TEMPORAL_ settings do not hold: {refused}. Mend the variable or the file it names.", field="TEMPORAL_"
        ) from refused
    if not config.get("target_host"):
        raise SettingsError(
            "No Temporal server is named. Start one with 'casework dev', or set TEMPORAL_ADDRESS.",
            field="TEMPORAL_ADDRESS",
        )
    config.setdefault("namespace", DEFAULT_NAMESPACE)
    return config


def _as_variables(settings: TemporalSettings) -> dict[str, str]:
    given = {
        "TEMPORAL_ADDRESS": settings.address,
        "TEMPORAL_NAMESPACE": settings.namespace,
        "TEMPORAL_API_KEY": settings.api_key.reveal() if settings.api_key else None,
        "TEMPORAL_TLS": None if settings.tls is None else str(settings.tls).lower(),
        "TEMPORAL_TLS_SERVER_NAME": settings.tls_server_name,
        "TEMPORAL_TLS_SERVER_CA_CERT_PATH": settings.tls_server_ca_cert_path,
        "TEMPORAL_TLS_CLIENT_CERT_PATH": settings.tls_client_cert_path,
        "TEMPORAL_TLS_CLIENT_KEY_PATH": settings.tls_client_key_path,
    }
    return {name: str(value) for name, value in given.items() if value is not None}
