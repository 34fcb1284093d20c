"""`migrate`, `token`, `policy` and `audit` on the database itself."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from casework.cli import exits
from tests.integration.cli.conftest import Line

COLUMNS = (
    "purpose,policy_name,version,min_score,auto_approve_ratio,hard_decline_score,hard_decline_ratio,"
    "material_delinquencies"
)
POLICY = f"""{COLUMNS}
debt_consolidation,Personal loans,3,700,36.50,580,50,2
"""


@pytest.fixture
def database(folder: Path, database_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEWORK_DATABASE_URL", database_dsn)


def test_migrate_brings_an_empty_database_up_to_date_and_then_does_nothing(
    line: Line, empty_database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEWORK_DATABASE_URL", empty_database_dsn)
    code, _, err = line("token", "list")
    assert (code, "casework migrate" in err) == (exits.UNREACHABLE, True)
    assert line.json("migrate")["applied"]
    assert line("migrate") == (0, "The tables are up to date.\n", "")
    assert line("token", "list") == (0, "No tokens. Make one with `casework token create NAME --role viewer`.\n", "")


def test_a_database_that_is_not_there_is_unreachable(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEWORK_DATABASE_URL", "postgresql://nobody:hunter2@127.0.0.1:9/x")
    for command in (["migrate"], ["policy", "show"], ["token", "list"], ["audit", str(uuid4())]):
        code, _, err = line(*command)
        assert code == exits.UNREACHABLE
        assert "127.0.0.1:9" in err
        assert "hunter2" not in err


@pytest.mark.usefixtures("database")
def test_policy_is_loaded_by_its_owner_and_shown(line: Line, folder: Path) -> None:
    """DA-39. Loaded as the owner's role; numbers keep their digits; a row without key is refused and told."""
    assert line("policy", "show")[1].startswith("No policy.")
    (folder / "policy.csv").write_text(POLICY)
    assert line.json("policy", "load", "policy.csv")["loaded"] == 1
    code, out, _ = line("policy", "show")
    assert code == 0
    assert "36.50" in out
    (folder / "policy.csv").write_text(POLICY + ",No key,1,700,36,580,50,2\n")
    code, out, err = line("policy", "load", "policy.csv")
    assert code == exits.FAILED
    assert "Row 2: " in err
    assert "1 rows loaded" in out


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("policy.csv", "", "no rows"),
        ("policy.csv", POLICY.replace("700", "many"), "row 1"),
        ("policy.txt", POLICY, ".csv, .json, .yaml"),
        ("absent.csv", None, "cannot be read"),
    ],
)
def test_a_policy_file_at_fault_loads_nothing(
    line: Line, folder: Path, name: str, content: str | None, told: str
) -> None:
    if content is not None:
        (folder / name).write_text(content)
    code, _, err = line("policy", "load", name)
    assert code == exits.USAGE
    assert told in err
    assert line.json("policy", "show")["items"] == []


@pytest.mark.usefixtures("database")
def test_workflows_are_published_once_per_content(line: Line) -> None:
    app = "casework.examples.loan_underwriting:app"
    for _ in range(2):
        published = line.json("workflows", "publish", "--app", app)
        assert published == {"items": [{"name": "loan-underwriting", "version": 1}]}


@pytest.mark.usefixtures("database")
def test_tokens_are_made_listed_and_revoked(line: Line) -> None:
    code, out, err = line("token", "create", "ada", "--role", "reviewer", "--role", "viewer")
    assert code == 0
    token = out.strip()
    assert len(out.splitlines()) == 1, "stdout is the token alone"
    assert "not shown again" in err
    code, out, _ = line("token", "list")
    assert "reviewer,viewer" in out
    assert token not in out
    assert line("token", "revoke", "000000000000")[0] == exits.USAGE
    assert line("token", "create", " ", "--role", "viewer")[0] == exits.USAGE


@pytest.mark.usefixtures("served")
def test_audit_prints_the_trail_of_a_run(line: Line) -> None:
    """DA-46. From PostgreSQL one can reconstruct a run; text and JSON."""
    run_id = line.json("runs", "start", "letter", "--input", '{"to": "Ada", "amount": 12.10}')["run_id"]
    assert line("runs", "watch", run_id, "--timeout", "30")[0] == 0
    assert line("review", "approve", run_id, "--reason", "good", "--wait", "--timeout", "20")[0] == 0
    assert line("runs", "watch", run_id, "--until", "end", "--timeout", "30")[0] == 0
    trail = line.json("audit", run_id)
    assert (trail["run"]["outcome"], trail["gaps"]) == ("approved", [])
    assert str(trail["run"]["request"]["amount"]) == "12.10"
    code, out, _ = line("audit", run_id)
    assert code == 0
    assert "outcome approved" in out
    assert "olga: approve, accepted" in out
    assert "good" in out
    assert "The trail is whole." in out
    assert line("audit", run_id, "--tenant", "other")[0] == exits.USAGE
    assert line("audit", str(uuid4()))[0] == exits.USAGE
