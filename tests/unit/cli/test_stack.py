"""The local stack's files, and what the environment has to say beside them."""

import json
from pathlib import Path

import pytest

from casework.cli import stack
from casework.cli.http import Api
from casework.errors import InputError
from casework.settings import Secret, Settings

STACK = {
    "api_url": "http://127.0.0.1:8080",
    "database_url": "postgresql://run@127.0.0.1:1/c",
    "admin_database_url": "postgresql://own@127.0.0.1:1/c",
    "temporal_address": "127.0.0.1:7233",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("CASEWORK_API_URL", "CASEWORK_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    made = tmp_path / ".casework"
    made.mkdir()
    (made / "stack.json").write_text(json.dumps(STACK))
    (made / "token").write_text("local-token\n")
    return made


def revealed(secret: Secret | None) -> str | None:
    return secret.reveal() if secret else None


def token_sent(api: Api) -> str | None:
    with api:
        return api._client.headers.get("Authorization")


def test_the_stack_fills_what_the_environment_leaves_open() -> None:
    settings = stack.joined(Settings.load({}))
    assert revealed(settings.database.url) == STACK["database_url"]
    assert revealed(settings.database.admin_url) == STACK["admin_database_url"]
    assert settings.temporal.address == STACK["temporal_address"]


def test_large_values_of_the_local_engine_are_in_its_folder(home: Path) -> None:
    """DA-22. Commands read the blobs of the stack that they join, and those of another engine only where it is said."""
    assert stack.joined(Settings.load({})).histories.blobs == str(home.absolute() / "blobs")
    assert stack.joined(Settings.load({"TEMPORAL_ADDRESS": "far:7233"})).histories.blobs is None
    assert stack.joined(Settings.load({"CASEWORK_BLOBS": "/mnt/blobs"})).histories.blobs == "/mnt/blobs"


def test_an_outside_database_is_not_mixed_with_the_local_owner() -> None:
    settings = stack.joined(Settings.load({"CASEWORK_DATABASE_URL": "postgresql://far/db"}))
    assert revealed(settings.database.url) == "postgresql://far/db"
    assert settings.database.admin_url is None


def test_the_local_token_goes_to_the_local_api_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert token_sent(Api.find()) == "Bearer local-token"
    monkeypatch.setenv("CASEWORK_API_URL", "https://far.example")
    assert token_sent(Api.find()) is None
    monkeypatch.setenv("CASEWORK_TOKEN", "mine")
    assert token_sent(Api.find()) == "Bearer mine"


@pytest.mark.parametrize("content", ["{", "[]", "\x00"])
def test_a_broken_stack_file_is_told(home: Path, content: str) -> None:
    (home / "stack.json").write_text(content)
    with pytest.raises(InputError, match="casework dev"):
        stack.find(Settings.load({}))


def test_without_a_stack_there_is_nothing(home: Path) -> None:
    (home / "stack.json").unlink()
    found = stack.find(Settings.load({}))
    assert found.api_url is None
    assert stack.joined(Settings.load({})) == Settings.load({})
