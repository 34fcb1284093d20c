"""The shipped manifest edited as a new user would: it works, or the message says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from casework.app import App
from casework.errors import ManifestError
from casework.examples.loan_underwriting.application import MANIFEST
from casework.examples.loan_underwriting.script import underwriter
from casework.examples.loan_underwriting.tools import TOOLS
from tests.integration.durable.conftest import APPLICATION, House

TEXT = MANIFEST.read_text()
NAMES = [tool.name for tool in TOOLS]

COUNTERSIGN = """\
    - id: countersign
      type: human_approval
      decisions:
        - {name: approve, outcome: approved}
        - {name: reject, outcome: declined}
  edges:
    - {from: countersign, to: end, condition: approve}
    - {from: countersign, to: end, condition: reject}
"""
SECOND_APPROVAL = (
    ("  edges:\n", COUNTERSIGN),
    ("      to: end\n      condition: approve", "      to: countersign\n      condition: approve"),
    ("        - name: approve\n          outcome: approved\n", "        - name: approve\n"),
)


def edited(folder: Path, *changes: tuple[str, str]) -> App:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "edited.yaml"
    path.write_text(text)
    return App(tools=TOOLS, manifests=[path], scripts={"underwriter": underwriter})


async def test_a_second_approval_is_added(house: House, tmp_path: Path) -> None:
    """AW-8, DA-12. Both people are asked; the outcome is that of the decision that ends the run."""
    async with house.with_app(edited(tmp_path, *SECOND_APPROVAL)) as busy:
        run_id = await busy.start(APPLICATION)
        await busy.review_at(run_id, "decision")
        await busy.decide(run_id, "approve")
        await busy.review_at(run_id, "countersign")
        assert (await busy.run(run_id)).outcome is None
        await busy.decide(run_id, "approve")
        row = await busy.reaches(run_id, "COMPLETED")
        assert row.outcome == "approved"
        assert row.workflow_version == 2


@pytest.mark.parametrize("gone", NAMES)
async def test_a_tool_is_removed(house: House, tmp_path: Path, gone: str) -> None:
    """AW-17. The agent may no longer call it: the model is told, the evidence is missing, and the case is referred."""
    rest = ", ".join(name for name in NAMES if name != gone)
    app = edited(tmp_path, (f"tools: [{', '.join(NAMES)}]", f"tools: [{rest}]"))
    async with house.with_app(app) as busy:
        run_id = await busy.start(APPLICATION)
        row = await busy.reaches(run_id, "AWAITING_REVIEW")
        assert row.recommendation["recommendation"] == "refer"
        steps = {step.name: step.state for step in await busy.steps(run_id) if step.kind == "tool"}
        assert steps.get(gone, "FAILED") == "FAILED"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("credit_check,", "credit_chek,", "credit_check"),
        ("initialNode: underwrite", "initialNode: underwritte", "underwrite"),
        ("agentRef: underwriter", "agentRef: underwritter", "underwriter"),
        ("to: decision", "to: decison", "decision"),
        ("condition: reject", "condition: rejct", "reject"),
        ("type: HUMAN_APPROVAL", "type: HUMAN_APROVAL", "HUMAN_APPROVAL"),
        ("outputKey: recommendation", "outputkey: recommendation", "outputKey"),
        ("kind: AiAgent", "kind: AiAgnet", "AiAgent"),
        ("{{ input.amount }}", "{{ input.amount", "inputTemplate"),
        ("provider: underwriting-model", "provider: underwriting-modell", "underwriting-model"),
        ("script: underwriter", "script: underwriterr", "underwriter"),
        ("maxLoops: 50", "maxLoops: fifty", "maxLoops"),
    ],
)
def test_a_typo_is_told_with_the_near_name(tmp_path: Path, old: str, new: str, message: str) -> None:
    """AW-5. A typo anywhere is refused before anything runs, and the message says what was probably meant."""
    with pytest.raises(ManifestError) as caught:
        edited(tmp_path, (old, new)).workflows()
    assert message in str(caught.value)
