"""Every fenced block runs or is checked."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from casework.api.inputs import check_input
from casework.cli import run_input
from casework.examples.loan_underwriting import app as loan_app
from casework.graph.admission import admit
from casework.graph.kinds import WorkflowSession
from casework.graph.loading import load_resources
from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider
from casework.policy import parse_policy
from casework.settings.whole import variable_names
from casework.values import loads
from tests.docs.commands import Command, commands, parse
from tests.docs.pages import PAGES, ROOT, Block, all_blocks, blocks, name, write_files

CHECKED = {"python", "yaml", "sh", "console", "json", "csv", "sql", "diff", "text", "mermaid"}
SHELL = {".", "apt-get", "curl"}
"""Programs beside ours that the pages call."""


def with_code(language: str) -> list[Path]:
    return [page for page in PAGES if any(block.language == language for block in blocks(page))]


def calls() -> list[Command]:
    return [command for block in all_blocks("sh", "console") for command in commands(block)]


def test_every_block_says_what_it_is() -> None:
    """A block in a language that nothing here checks would not be checked."""
    unknown = [block.where for page in PAGES for block in blocks(page) if block.language not in CHECKED]
    assert not unknown


@pytest.mark.parametrize("page", with_code("python"), ids=name)
def test_python_runs(page: Path, tmp_path: Path) -> None:
    """The blocks of a page run one after the other, in a folder with the files that the page shows."""
    write_files(page, tmp_path)
    lines: list[str] = []
    for block in blocks(page):
        if block.language == "python":
            # Each block stands at its line of the page, so that a traceback names it.
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    script = tmp_path / "page_of_documentation.py"
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{name(page)}: {done.stderr}"


@pytest.mark.parametrize("block", all_blocks("yaml"), ids=lambda block: block.where)
def test_manifests_are_admitted(block: Block) -> None:
    """Manifests hold together; that the tools they name are the App's is shown where a page has an App."""
    resources = load_resources(block.text, block.where)
    sessions = [each for each in resources if isinstance(each, WorkflowSession)]
    for session in sessions:
        workflow = loan_app.workflow(session.spec.workflow_ref)
        check_input(workflow.name, workflow.input_schema, session.spec.input)
    found = [each for each in resources if isinstance(each, AiWorkflow | AiAgent | LlmProvider)]
    agents = [manifest for manifest in found if isinstance(manifest, AiAgent)]
    workflows = [manifest for manifest in found if isinstance(manifest, AiWorkflow)]
    called = {each.tool for workflow in workflows for each in workflow.spec.vertices if each.tool}
    admitted = admit(found, called.union(*(agent.spec.tools for agent in agents)))
    assert len(admitted) == len(workflows)
    assert admitted or sessions or all(isinstance(manifest, LlmProvider) for manifest in found)


@pytest.mark.parametrize("call", [each for each in calls() if each.words[:1] == ["casework"]], ids=lambda c: c.where)
def test_commands_and_options_exist(call: Command) -> None:
    """Each `casework` line is one that the command line takes."""
    parse(call.words[1:])


def test_other_lines_call_what_is_there() -> None:
    """`make` verbs exist, variables are settings, and nothing else is called."""
    verbs = {line.partition(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if line[:1].isalpha()}
    for call in calls():
        ours = {each for each in call.variables if each.startswith(("CASEWORK_", "TEMPORAL_"))}
        assert ours <= set(variable_names()), call
        program = call.words[:1]
        if program == ["make"]:
            assert set(call.words[1:]) <= verbs, call
        elif program == ["python"]:
            assert call.words[1] == "-m", call
            assert importlib.util.find_spec(call.words[2]), call
        elif program and program != ["casework"]:
            assert program[0] in SHELL, call


@pytest.mark.parametrize("block", all_blocks("json", "csv"), ids=lambda block: block.where)
def test_data_can_be_read(block: Block) -> None:
    """JSON is JSON; a policy is one that can be loaded."""
    if block.language == "json":
        assert loads(block.text)
    elif block.title == "policy.csv":
        assert parse_policy(block.text, "csv").limits


def started_from_files() -> list[tuple[Block, dict[str, Any]]]:
    found = []
    for page in PAGES:
        titled = {block.title: block for block in blocks(page)}
        for block in blocks(page):
            for call in commands(block) if block.language in ("sh", "console") else ():
                values = parse(call.words[1:]) if call.words[:3] == ["casework", "runs", "start"] else {}
                if str(values.get("path")) in titled:
                    found.append((titled[str(values["path"])], values))
    return found


@pytest.mark.parametrize(("block", "values"), started_from_files(), ids=lambda each: getattr(each, "where", ""))
def test_files_of_inputs_fit_their_workflow(block: Block, values: dict[str, Any], tmp_path: Path) -> None:
    """What a page starts runs from holds inputs that the workflow takes."""
    schema = loan_app.workflow(values["workflow"]).workflow.spec.input
    file = tmp_path / str(block.title)
    file.write_text(block.text)
    source = run_input.read(file, schema or {}, values["mapping"], values["limit"])
    assert source.rows
    for row in source.rows:
        assert row.error is None
        check_input(values["workflow"], schema, row.input)


@pytest.mark.parametrize("block", all_blocks("sql"), ids=lambda block: block.where)
def test_sql_runs(block: Block, database_dsn: str) -> None:
    """Statements run on a migrated database; roles belong to the server, so nothing is kept."""
    with psycopg.connect(database_dsn) as connection:
        connection.execute(block.text.encode())
        connection.rollback()
