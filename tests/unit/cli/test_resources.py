"""`casework validate`: manifests are checked without a server, and what is wrong is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from casework.cli import exits
from casework.cli.resource_names import kind_of
from casework.cli.resources_files import users_first
from casework.cli.resources_view import difference, lean
from casework.cli.root import code_of_run
from casework.graph.loading import load_resources

WORKFLOW = """\
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: research}
spec:
  initialNode: find
  nodes:
    - {id: find, type: TOOL, tool: search, outputKey: found}
    - {id: sum, type: AGENT, agentRef: writer, outputKey: text}
    - {id: sub, type: SUBWORKFLOW, workflowRef: review, outputKey: verdict}
  edges: [{from: find, to: sum}, {from: sum, to: sub}]
"""
AGENT = """\
apiVersion: casework.dev/v1alpha1
kind: AiAgent
metadata: {name: writer}
spec: {provider: main, tools: [search]}
"""


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("CASEWORK_API_URL", "CASEWORK_TOKEN", "CASEWORK_APP"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_what_is_named_and_not_there_is_taken_on_trust_and_told(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """AW-2. Without an application, a lone workflow can be checked for all that it says itself."""
    (bare / "w.yaml").write_text(WORKFLOW)
    (bare / "a.yaml").write_text(AGENT)
    assert code_of_run(["validate", "-f", "w.yaml"]) == exits.OK
    captured = capsys.readouterr()
    assert captured.out == "1 manifest holds.\n"
    assert "tool search, agent writer, workflow review" in captured.err
    assert code_of_run(["validate", "-f", "w.yaml", "-f", "a.yaml"]) == exits.OK
    captured = capsys.readouterr()
    assert captured.out == "2 manifests hold.\n"
    assert "provider main" in captured.err
    assert "agent writer" not in captured.err


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("tool: search", "toool: search", "w.yaml:7: spec.nodes[0].toool: there is no field 'toool'"),
        ("initialNode: find", "initialNode: fnd", "w.yaml:5: spec.initialNode: AiWorkflow 'research'"),
        ("initialNode: find", "initialNode: fnd", "Did you mean 'find'?"),
        ("type: AGENT", "type: AGNET", "Did you mean 'AGENT'?"),
        ("kind: AiWorkflow", "kind: AiWorkflw", "w.yaml:2: kind"),
        ("{name: research}", "{name: research", "this is not YAML"),
    ],
)
def test_a_fault_is_told_with_file_line_path_and_near_name(
    old: str, new: str, told: str, bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """AW-2."""
    (bare / "w.yaml").write_text(WORKFLOW.replace(old, new))
    assert code_of_run(["validate", "-f", "w.yaml"]) == exits.USAGE
    assert told in capsys.readouterr().err


def test_a_typo_below_an_open_input_is_a_warning(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """AW-2. It holds, so the exit code is 0; the near name is told."""
    text = WORKFLOW.replace("outputKey: found}", 'outputKey: found, arguments: {q: "{{ input.qestion }}"}}')
    (bare / "w.yaml").write_text(text + "  input: {type: object, properties: {question: {type: string}}}\n")
    assert code_of_run(["validate", "-f", "w.yaml"]) == exits.OK
    captured = capsys.readouterr()
    assert captured.out == "1 manifest holds.\n"
    assert "Warning: w.yaml:7: spec.nodes[0].arguments" in captured.err
    assert "Did you mean 'question'?" in captured.err


def test_the_root_of_a_fault_stands_alone(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """AW-2. Where an edge leads nowhere, the nodes that it would lead to are not told as unreached."""
    (bare / "w.yaml").write_text(WORKFLOW.replace("to: sum}", "to: smu}"))
    assert code_of_run(["validate", "-f", "w.yaml"]) == exits.USAGE
    err = capsys.readouterr().err
    assert "Did you mean 'sum'?" in err
    assert "no way leads" not in err


def test_users_are_deleted_before_what_they_use() -> None:
    """AW-2. A workflow before those that it refers to, agents after workflows, providers after agents."""
    provider = "apiVersion: casework.dev/v1alpha1\nkind: LlmProvider\nmetadata: {name: main}\nspec: {type: openai}\n"
    inner = WORKFLOW.replace("name: research", "name: review").replace("workflowRef: review", "workflowRef: other")
    found = load_resources("---\n".join((provider, AGENT, inner, WORKFLOW)))
    assert [one.name for one in users_first(found)] == ["research", "review", "writer", "main"]


@pytest.mark.parametrize("line", [[], ["agent"], ["agent", "x", "-f", "x.yaml"], ["agent", "-f", "x.yaml"]])
def test_delete_takes_a_name_or_files(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of_run(["delete", *line]) == exits.USAGE
    assert "Name KIND and NAME, or files with -f" in capsys.readouterr().err


def test_the_faults_of_all_files_are_told(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """AW-2. A folder is its manifests; one file at fault hides no other."""
    folder = bare / "all"
    folder.mkdir()
    (folder / "a.yaml").write_text(AGENT.replace("provider", "provder"))
    (folder / "w.yml").write_text(WORKFLOW.replace("edges", "edgs"))
    (folder / "readme.txt").write_text("no manifest")
    assert code_of_run(["validate", "-f", "all"]) == exits.USAGE
    told = capsys.readouterr().err
    assert "a.yaml:4" in told
    assert "w.yml:10" in told


def test_a_resource_in_two_files_is_refused(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bare / "a.yaml").write_text(AGENT)
    (bare / "b.yaml").write_text(AGENT)
    assert code_of_run(["validate", "-f", "a.yaml", "-f", "b.yaml"]) == exits.USAGE
    assert "b.yaml:3: metadata.name: AiAgent 'writer' stands at a.yaml:3: metadata.name too" in capsys.readouterr().err


def test_an_application_knows_its_tools(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """AW-2. AW-5. With --app nothing is taken on trust."""
    (bare / "a.yaml").write_text(AGENT.replace("main", "underwriting-model").replace("search", "credit_chek"))
    arguments = ["validate", "-f", "a.yaml", "--app", "casework.examples.loan_underwriting:app"]
    assert code_of_run(arguments) == exits.USAGE
    assert "Did you mean 'credit_check'?" in capsys.readouterr().err
    (bare / "a.yaml").write_text(AGENT.replace("main", "underwriting-model").replace("search", "credit_check"))
    assert code_of_run(arguments) == exits.OK
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("path", ["none.yaml", "empty"])
def test_files_that_are_not_there(path: str, bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bare / "empty").mkdir()
    assert code_of_run(["validate", "-f", path]) == exits.USAGE
    assert path in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("AiWorkflow", "AiWorkflow"), ("workflows", "AiWorkflow"), ("AGENT", "AiAgent"), ("provider", "LlmProvider"),
        ("mcpservers", "McpServer"), ("servers", "McpServer"), ("session", "WorkflowSession"),
        ("workflowsession", "WorkflowSession"),
    ],
)  # fmt: skip
def test_kinds_as_people_type_them(text: str, kind: str) -> None:
    assert kind_of(text) == kind


def test_a_reader_is_not_shown_what_an_edge_has_of_itself() -> None:
    """AW-2. No empty condition and no `onError: false`; what was written stays."""
    edges = [{"from": "a", "to": "b", "condition": "", "onError": False}, {"from": "b", "to": "end", "onError": True}]
    before = {"kind": "AiWorkflow", "spec": {"edges": edges}}
    assert lean(before)["spec"]["edges"] == [{"from": "a", "to": "b"}, edges[1]]
    after = {"kind": "AiWorkflow", "spec": {"edges": [{"from": "a", "to": "b"}, edges[1]]}}
    assert list(difference("AiWorkflow/w", before, after)) == []
