"""`casework worker`, `status` and `engine` where the settings name another engine than the database's own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from casework.cli import exits
from tests.integration.cli.conftest import Line
from tests.integration.cli.test_servers import environment, line_with, process
from tests.integration.durable.sweeping import new_namespace


@pytest.fixture
def other(temporal_address: str) -> str:
    """A second namespace of the same server."""
    return asyncio.run(new_namespace(temporal_address, "staging")).namespace


def test_a_move_to_another_engine_is_refused_until_it_is_accepted(
    database_dsn: str, temporal_address: str, other: str, line: Line, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """DA-8. DA-32. A worker of another namespace does not start and says why; the owner may say that it was meant."""
    environ = environment(database_dsn, temporal_address)
    with process(environ, tmp_path, "worker") as running:
        line_with(running, "worker is ready")
    moved = {**environ, "TEMPORAL_NAMESPACE": other}
    with process(moved, tmp_path, "worker") as running:
        line_with(running, f"Error: .*'default'.*'{other}'.*TEMPORAL_NAMESPACE.*casework engine accept")
        assert running.wait(60) == exits.USAGE
    for name in ("CASEWORK_DATABASE_URL", "TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"):
        monkeypatch.setenv(name, moved[name])
    monkeypatch.setenv("CASEWORK_ADMIN_DATABASE_URL", database_dsn)
    code, out, _ = line("status")
    assert code == exits.FAILED
    assert "is not the engine of this database" in out
    assert "casework engine accept" in out
    assert line("engine", "show")[0] == exits.FAILED
    told = line.json("engine", "accept")
    assert (told["before"]["namespace"], told["kept"]["namespace"]) == ("default", other)
    assert line.json("engine", "show")["same"] is True
    assert "is not the engine of this database" not in line("status")[1]
    with process(moved, tmp_path, "worker") as running:
        line_with(running, "worker is ready")
