"""`casework task run --database`: a Task that works in a database transaction, tried on a real one."""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg
import pytest

from casework.cli import exits
from casework.cli.root import code_of_run

MODULE = """
from casework.process import TransactionalTask, bot_task


@bot_task("note")
class Note(TransactionalTask):
    async def run(self, transaction, ctx):
        await ctx.connection.execute("insert into notes values (%s)", (transaction.data["text"],))
        if transaction.data.get("bad"):
            raise ValueError("bad")
"""


def test_it_is_rolled_back_unless_it_is_to_be_kept(
    database_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing stays of a try; with --keep what ended well does, and what failed does not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("CASEWORK_DATABASE_URL", database_dsn)
    (tmp_path / "notes_tasks.py").write_text(MODULE)
    (tmp_path / "good.json").write_text('{"text": "good"}')
    (tmp_path / "bad.json").write_text('{"text": "bad", "bad": true}')
    with psycopg.connect(database_dsn, autocommit=True) as conn:
        conn.execute("create table notes (text text)")
        conn.execute("grant insert on notes to casework_runtime")
        kept = []
        for words in ("good.json --database", "good.json --database --keep", "bad.json --database --keep"):
            code = code_of_run(["task", "run", "notes_tasks:Note", "--input", *words.split()])
            kept.append((code, conn.execute("select count(*) from notes").fetchone()))
    assert kept == [(exits.OK, (0,)), (exits.OK, (1,)), (exits.FAILED, (1,))]
    assert "APPLICATION ValueError" in capsys.readouterr().err
    monkeypatch.setenv("CASEWORK_DATABASE_URL", "postgresql://127.0.0.1:1/none")
    code = code_of_run(["task", "run", "notes_tasks:Note", "--input", "good.json", "--database"])
    assert code == exits.UNREACHABLE
    sys.modules.pop("notes_tasks", None)
