"""Settings: read once, refused with a remedy, and silent about secrets."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from casework.errors import SettingsError
from casework.settings import Secret, Settings, list_settings

URL = "postgresql://ada:hidden-word@db.example/cases"


def test_an_empty_environment_gives_the_defaults() -> None:
    settings = Settings.load({})
    assert settings == Settings()
    assert settings.app.home == Path(".casework")
    assert settings.policy.fallback == "fail_closed"


def test_values_are_read_in_their_types() -> None:
    settings = Settings.load(
        {
            "CASEWORK_DATABASE_URL": URL,
            "CASEWORK_DATABASE_POOL_MAX": " 20 ",
            "CASEWORK_STICKY_QUEUE_TIMEOUT": "1.5",
            "CASEWORK_HOME": "/srv/my stack",
            "CASEWORK_POLICY_FALLBACK": "fixture",
            "TEMPORAL_TLS": "True",
        }
    )
    assert settings.database.url == Secret(URL)
    assert settings.database.pool_max_size == 20
    assert settings.worker.sticky_queue_timeout_s == 1.5
    assert settings.app.home == Path("/srv/my stack")
    assert settings.policy.fallback == "fixture"
    assert settings.temporal.tls is True


def test_an_empty_variable_counts_as_not_set() -> None:
    assert Settings.load({"CASEWORK_DATABASE_POOL_MAX": "", "CASEWORK_MODEL": "  "}) == Settings()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("CASEWORK_DATABSE_URL", "CASEWORK_DATABASE_URL"),
        ("CASEWORK_MODLE", "CASEWORK_MODEL"),
        ("CASEWORK_POLICY_FALBACK", "CASEWORK_POLICY_FALLBACK"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_name(name: str, near: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is no setting. Did you mean {near}") as refused:
        Settings.load({name: "x"})
    assert refused.value.field == name


def test_an_unknown_variable_like_no_other_lists_the_settings() -> None:
    with pytest.raises(SettingsError, match="The settings are: CASEWORK_DATABASE_URL, "):
        Settings.load({"CASEWORK_Ω": "x"})


def test_reserved_and_foreign_variables_pass() -> None:
    Settings.load({"CASEWORK_TEST_DATA": "x", "CASEWORK_DRILL_KILL_AT": "x", "TEMPORAL_UNKNOWN": "x", "PATH": "x"})


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("CASEWORK_DATABASE_POOL_MAX", "many", "Use a whole number from 1 to 1000"),
        ("CASEWORK_DATABASE_POOL_MAX", "0", "Use a whole number from 1 to 1000"),
        ("CASEWORK_DATABASE_POOL_MAX", "1.5", "Use a whole number"),
        ("CASEWORK_DATABASE_POOL_MAX", "9" * 5000, "Use a whole number"),
        ("CASEWORK_STICKY_QUEUE_TIMEOUT", "nan", "Use a number from 0.1 to 60"),
        ("CASEWORK_STICKY_QUEUE_TIMEOUT", "inf", "Use a number from 0.1 to 60"),
        ("CASEWORK_API_PORT", "70000", "to 65535"),
        ("CASEWORK_POLICY_FALLBACK", "open", "Use one of: fail_closed, fixture"),
        ("CASEWORK_API_URL", "localhost:8080", "Begin it with http:// or https://"),
        ("TEMPORAL_TLS", "perhaps", "Use true or false"),
    ],
)
def test_a_bad_value_names_variable_value_and_remedy(name: str, value: str, remedy: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.load({name: value})
    message = str(refused.value)
    assert name in message
    assert value[:50] in message
    assert remedy in message
    assert len(message) < 400


def test_a_bad_secret_is_not_repeated() -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.load({"CASEWORK_DATABASE_URL": "mysql://ada:hidden-word@db.example/cases"})
    assert "CASEWORK_DATABASE_URL" in str(refused.value)
    assert "hidden-word" not in str(refused.value)


def test_bounds_that_contradict_are_refused() -> None:
    with pytest.raises(SettingsError, match="Make the first at most the second"):
        Settings.load({"CASEWORK_DATABASE_POOL_MIN": "11"})


def test_no_secret_shows() -> None:
    settings = Settings.load(
        {"CASEWORK_DATABASE_URL": URL, "TEMPORAL_API_KEY": "hidden-word", "CASEWORK_TOKEN": "hidden-word"}
    )
    assert "hidden-word" not in f"{settings!r} {settings} {settings.database.url} {settings.api.token!s}"
    with pytest.raises(TypeError):
        pickle.dumps(settings)
    assert settings.database.runtime_dsn() == URL


def test_the_owners_urls_default_to_the_one_before() -> None:
    one = Settings.load({"CASEWORK_DATABASE_URL": URL}).database
    assert one.owner_dsn() == one.policy_dsn() == URL
    two = Settings.load({"CASEWORK_DATABASE_URL": URL, "CASEWORK_ADMIN_DATABASE_URL": "postgres://owner@db/c"}).database
    assert (two.runtime_dsn(), two.owner_dsn(), two.policy_dsn()) == (URL, *["postgres://owner@db/c"] * 2)
    with pytest.raises(SettingsError, match="casework dev"):
        Settings().database.runtime_dsn()


def test_another_process_loads_the_same() -> None:
    settings = Settings.load({"CASEWORK_DATABASE_URL": URL, "TEMPORAL_TLS": "false", "CASEWORK_GRACEFUL_STOP": "2.5"})
    settings = replace(settings, app=replace(settings.app, home=Path("/srv/Zoë's stack")))
    assert Settings.load(settings.as_environ()) == settings
    assert Settings().as_environ() == {}


def test_every_setting_is_listed_with_default_and_reason() -> None:
    listed = list_settings()
    assert len(listed) == sum(len(fields(getattr(Settings(), part.name))) for part in fields(Settings))
    assert len({each.name for each in listed}) == len(listed)
    for each in listed:
        assert each.doc, f"{each.name} has no text under its field"
        assert "Default" in each.doc, f"the text of {each.name} does not say its default"
        assert (
            each.default in each.doc.replace(",", "")
            or not each.default[0].isalnum()
            or _as_told(each.default, each.doc)
        )


def _as_told(default: str, doc: str) -> bool:
    return default.removesuffix(".0") in doc


def test_settings_are_read_quickly() -> None:
    """Every command reads them, so they bring no library that takes time to import."""
    show = "import sys, casework.settings; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pydantic", "pydantic_settings", "temporalio", "psycopg", "asyncio"} & set(loaded)
