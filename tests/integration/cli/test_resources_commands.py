"""`casework apply`, `get`, `describe`, `diff`, `delete`, `graph` against a served API."""

from __future__ import annotations

from pathlib import Path

import pytest

from casework.cli import exits
from casework.values import dumps
from tests.integration.api.conftest import LETTER
from tests.integration.cli.conftest import Line, Served

pytestmark = pytest.mark.usefixtures("served")

AGENT = """\
apiVersion: casework.dev/v1alpha1
kind: LlmProvider
metadata: {name: main}
spec: {type: openai, defaultModel: small, temperature: 0.10, keyRef: {env: MAIN_API_KEY}}
---
apiVersion: casework.dev/v1alpha1
kind: AiAgent
metadata: {name: writer}
spec:
  provider: main
  systemPrompt: |
    Write.
    Write well.
"""
SESSION = """\
apiVersion: casework.dev/v1alpha1
kind: WorkflowSession
metadata: {name: for-ada}
spec: {workflowRef: letter, input: {to: Ada, amount: 12.10}, maxLoops: 5}
"""


def test_the_life_of_an_agent(line: Line, folder: Path) -> None:
    """AW-2. Applied, the same again, compared, changed, described, deleted."""
    file = folder / "agent.yaml"
    file.write_text(AGENT)
    code, out, _ = line("diff", "-f", "agent.yaml")
    assert code == exits.FAILED
    assert "+kind: AiAgent" in out
    assert line("apply", "-f", "agent.yaml", "--dry-run")[1].count("(dry run)") == 2
    assert line.json("get") == {"items": []}

    code, out, err = line("apply", "-f", "agent.yaml")
    assert (code, out) == (0, "LlmProvider/main created: generation 1\nAiAgent/writer created: generation 1\n"), err
    assert "AiAgent/writer unchanged: generation 1" in line("apply", "-f", "agent.yaml")[1]
    assert line("diff", "-f", "agent.yaml") == (0, "", "")

    file.write_text(AGENT.replace("Write well.", "Write better."))
    code, out, _ = line("diff", "-f", "agent.yaml")
    assert code == exits.FAILED
    assert "-    Write well.\n+    Write better." in out
    assert "AiAgent/writer configured: generation 2" in line("apply", "-f", "agent.yaml")[1]

    code, out, _ = line("describe", "agent", "writer")
    assert code == 0
    assert "observed generation 2" in out
    assert "effectiveModel: small" in out
    assert "Ready" in out
    code, out, _ = line("get", "agents", "writer")
    assert code == 0
    (folder / "again.yaml").write_text(out)
    assert "unchanged" in line("apply", "-f", "again.yaml")[1], "what is printed can be applied"
    assert [one["name"] for one in line.json("get")["items"]] == ["writer", "main"]

    assert line("delete", "agent", "writer")[0] == 0
    code, _, err = line("describe", "agent", "writer")
    assert code == exits.USAGE
    assert "There is no AiAgent 'writer'" in err


def test_a_session_is_a_run(line: Line, folder: Path) -> None:
    """AW-2. Applying a WorkflowSession starts the run; describe shows its status until it has ended."""
    (folder / "session.yaml").write_text(SESSION)
    (made,) = line.json("apply", "-f", "session.yaml")["items"]
    code, _, err = line("runs", "watch", made["run_id"], "--timeout", "30")
    assert code == 0, err
    status = line.json("describe", "session", "for-ada")["status"]
    assert (status["phase"], status["currentNode"], status["sessionId"]) == (
        "AWAITING_REVIEW",
        "decision",
        made["run_id"],
    )
    assert line("delete", "session", "for-ada")[0] == exits.CONFLICT
    assert line("review", "approve", made["run_id"], "--reason", "good", "--wait", "--timeout", "20")[0] == 0
    assert line("runs", "watch", made["run_id"], "--until", "end", "--timeout", "30")[0] == 0
    status = line.json("describe", "session", "for-ada")["status"]
    assert (status["phase"], status["outcome"]) == ("COMPLETED", "approved")
    assert status["endTime"] > status["startTime"]
    assert "sessionId" in line("describe", "session", "for-ada")[1]
    assert line("delete", "session", "for-ada")[0] == 0


def test_a_workflow_is_applied_drawn_and_hidden(line: Line, folder: Path) -> None:
    """AW-2. AW-12. By its name from the server, with the run's node lit."""
    changed = {**LETTER, "spec": {**LETTER["spec"], "maxLoops": 9}}  # type: ignore[dict-item]  # a mapping
    (folder / "letter.json").write_text(dumps(changed))
    assert "workflow letter is at version 2" in line("apply", "-f", "letter.json")[1]
    assert line("diff", "-f", "letter.json") == (0, "", ""), "edges and decisions too"
    (folder / "more.json").write_text(dumps(changed).replace('"maxLoops":9', '"maxLoops":10'))
    changes = [text for text in line("diff", "-f", "more.json")[1].splitlines()[2:] if text[0] in "+-"]
    assert changes == ["-  maxLoops: 9", "+  maxLoops: 10"]
    assert line("graph", "letter")[1].startswith("flowchart TD")
    run_id = line.json("runs", "start", "letter", "--input", '{"to": "Ada", "amount": 1}')["run_id"]
    assert line("runs", "watch", run_id, "--timeout", "30")[0] == 0
    assert "class n0 lit" in line("graph", "letter", "--run", run_id)[1]
    assert "1 visit" in line("graph", "letter", "--run", run_id)[1]
    code, out, _ = line("delete", "workflow", "letter")
    assert (code, out) == (0, "AiWorkflow/letter deleted. No new run is started of it (version 2 was the newest).\n")
    assert line("runs", "start", "letter", "--input", '{"to": "Ada", "amount": 1}')[0] == exits.USAGE
    assert line("runs", "show", run_id)[0] == 0


def test_files_are_deleted_as_they_were_applied(line: Line, folder: Path) -> None:
    """AW-2. `delete -f` takes away what `apply -f` brought, users first; what is not there any more is told."""
    (folder / "all.yaml").write_text(AGENT)
    assert line("apply", "-f", "all.yaml")[0] == 0
    assert line("delete", "-f", "all.yaml") == (0, "AiAgent/writer deleted.\nLlmProvider/main deleted.\n", "")
    code, out, err = line("delete", "-f", "all.yaml")
    assert (code, out, err) == (0, "", "AiAgent/writer is not there.\nLlmProvider/main is not there.\n")


def test_a_refusal_of_the_server_is_one_sentence(line: Line, folder: Path) -> None:
    """AW-5. What only the server knows: that there is no such tool."""
    (folder / "agent.yaml").write_text(AGENT.replace("  provider: main", "  provider: main\n  tools: [serch]"))
    code, _, err = line("apply", "-f", "agent.yaml")
    assert code == exits.USAGE
    assert "there is no registered tool 'serch'" in err


def test_a_name_that_is_not_applied(line: Line, served: Served) -> None:
    assert line("get", "agent", "nobody")[0] == exits.USAGE
    assert line("delete", "agent", "nobody")[0] == exits.USAGE
    assert line("get")[1].startswith("Nothing is applied.")
    code, _, err = line("get", "agnts")
    assert code == exits.USAGE
    assert "is no kind" in err


def test_what_the_server_refuses_is_told_with_file_and_line(line: Line, folder: Path) -> None:
    """AW-2. What only the server can know: a tool that is not there, an input that does not fit, a wrong field."""
    (folder / "lone.yaml").write_text(
        "apiVersion: casework.dev/v1alpha1\nkind: AiAgent\nmetadata: {name: lone}\nspec:\n  provider: nobody\n"
    )
    code, _, err = line("apply", "-f", "lone.yaml")
    assert code == exits.USAGE
    assert "lone.yaml:5: spec.provider: AiAgent 'lone'" in err
    (folder / "session.yaml").write_text(AGENT + "---\n" + SESSION.replace("amount: 12.10", "amount: much"))
    code, _, err = line("apply", "-f", "session.yaml")
    assert code == exits.USAGE
    assert "session.yaml:18: spec.input.amount 'much' is not of type" in err
