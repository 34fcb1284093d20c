"""What can be set from outside, as documented classes, one for each part; built once and passed in.

Here belong the settings' names, defaults and reasons, and the reading of the environment. Nothing here connects
anywhere or reads `os.environ` on import; code below the command line never reads the environment itself.
Standard library only: every command imports this, also the quick ones.
"""

from casework.settings.listing import SettingFacts, list_settings
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
from casework.settings.secret import Secret
from casework.settings.whole import Settings

__all__ = [
    "ApiSettings",
    "AppSettings",
    "DatabaseSettings",
    "HistorySettings",
    "ModelSettings",
    "PolicySettings",
    "ProcessSettings",
    "Secret",
    "SettingFacts",
    "Settings",
    "TelemetrySettings",
    "TemporalSettings",
    "WorkerSettings",
    "list_settings",
]
