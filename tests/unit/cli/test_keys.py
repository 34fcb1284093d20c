"""`casework keys`: what is shown is ids; what is kept is one file that its owner alone reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from casework.cli.root import root
from casework.durable.keys import KeyFile


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "secret" / "keys.json"
    monkeypatch.setenv("CASEWORK_PAYLOAD_KEYS", str(made))
    return made


def run(*words: str) -> Result:
    return CliRunner().invoke(root, ["keys", *words])


def test_keys_are_added_listed_and_rotated(path: Path) -> None:
    """DA-22. A new key reads; it writes when it is told to; no output holds a key."""
    said = run("add", "k1").output
    assert "k1" in said
    assert "No key writes yet" in said
    run("rotate")
    run("add", "k2")
    assert KeyFile.load(path).writing == "k1"
    run("rotate", "k2")
    told = json.loads(run("list", "--json").output)
    assert [(each["id"], each["writes"]) for each in told["keys"]] == [("k1", False), ("k2", True)]
    said += run("list").output + json.dumps(told)
    kept = json.loads(path.read_text())
    assert not any(each["key"] in said for each in kept["keys"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["keys.json"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("add", "k1"), "There is a key 'k1' already"),
        (("add", "k 1"), "no id of a key"),
        (("rotate", "k9"), "There is no key 'k9'. Keys: k1"),
        (("rotate",), "writes already"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(path: Path, words: tuple[str, ...], told: str) -> None:
    """DA-22. A mistake in a command loses no key."""
    KeyFile().with_new("k1").written_by("k1").save(path)
    before = path.read_bytes()
    result = run(*words)
    assert told in str(result.exception)
    assert path.read_bytes() == before


def test_a_file_that_others_read_is_refused(path: Path) -> None:
    KeyFile().with_new("k1").save(path)
    path.chmod(0o640)
    for words in (("list",), ("add",), ("rotate",)):
        assert "chmod 600" in str(run(*words).exception)


def test_the_setting_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CASEWORK_PAYLOAD_KEYS", raising=False)
    assert "CASEWORK_PAYLOAD_KEYS is not set" in str(run("list").exception)
