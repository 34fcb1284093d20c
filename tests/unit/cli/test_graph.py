"""`casework graph FILE`: a picture without a server."""

from pathlib import Path

import pytest

import casework.examples.loan_underwriting as loan
from casework.cli import exits
from casework.cli.root import code_of_run

MANIFEST = str(Path(loan.__file__).parent / "manifests" / "loan-underwriting.yaml")


def test_a_file_becomes_mermaid(capsys: pytest.CaptureFixture[str]) -> None:
    """AW-12. The text goes to stdout."""
    assert code_of_run(["graph", MANIFEST]) == exits.OK
    assert capsys.readouterr().out.startswith("flowchart TD\n")


def test_the_name_of_the_output_says_the_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """AW-12. `--output loan.svg` is SVG; stdout stays empty."""
    output = tmp_path / "loan.svg"
    assert code_of_run(["graph", MANIFEST, "--output", str(output)]) == exits.OK
    assert output.read_text(encoding="utf-8").startswith("<svg ")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: AiWorkflo", "Did you mean 'AiWorkflow'?"),
        ("apiVersion: casework.dev/v1alpha1\nkind: AiAgent\nmetadata: {name: a}\nspec: {provider: p}", "no AiWorkflow"),
        ("", "it holds no manifest"),
    ],
)
def test_what_cannot_be_drawn_is_told(text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    assert code_of_run(["graph", str(path)]) == exits.USAGE
    assert told in capsys.readouterr().err


def test_of_several_workflows_one_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file with two workflows is not drawn by guess."""
    one = (
        "apiVersion: casework.dev/v1alpha1\nkind: AiWorkflow\nmetadata: {{name: {0}}}\n"
        "spec: {{initialNode: a, nodes: [{{id: a, type: AGENT}}]}}\n"
    )
    path = tmp_path / "two.yaml"
    path.write_text(one.format("first") + "---\n" + one.format("second"))
    assert code_of_run(["graph", str(path)]) == exits.USAGE
    assert "first, second" in capsys.readouterr().err
    assert code_of_run(["graph", str(path), "--workflow", "second"]) == exits.OK
    assert "Workflow second" in capsys.readouterr().out


def test_a_workflow_of_an_application_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    """AW-12. By its name, without a server; a name that is not there, and a free tree, are told."""
    assert code_of_run(["graph", "loan-underwriting", "--app", "casework.examples.loan_underwriting:app"]) == exits.OK
    assert "Workflow loan-underwriting" in capsys.readouterr().out
    assert code_of_run(["graph", "loan-underwritin", "--app", "casework.examples.loan_underwriting:app"]) != exits.OK
    assert "loan-underwriting" in capsys.readouterr().err
    assert code_of_run(["graph", "group-talk", "--app", "casework.examples.group_talk:app"]) == exits.USAGE
    assert "is a free tree" in capsys.readouterr().err
