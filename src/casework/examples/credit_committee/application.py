"""The application object: the loan case's tools and script, and the group talk as a free tree beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from casework.agents import ModelAnswer, ModelRequest
from casework.app import App
from casework.examples.group_talk.application import group_talk, scripted_agent
from casework.examples.group_talk.committee import CAST
from casework.examples.loan_underwriting.application import POLICY
from casework.examples.loan_underwriting.script import underwriter
from casework.examples.loan_underwriting.tools import TOOLS

MANIFEST = Path(__file__).parent / "manifests" / "loan-underwriting-with-committee.yaml"
WHERE = "Minutes of the committee: output committee of this run."
"""What a rationale that refers ends with, so that the reviewer knows where to read on."""


def referring_underwriter(request: ModelRequest) -> ModelAnswer:
    """The scripted underwriter, who says where the minutes are if it refers."""
    answer = underwriter(request)
    output = answer.output
    if not isinstance(output, dict) or output["recommendation"] != "refer":
        return answer
    rationale = f"{output['rationale']} {WHERE}"
    return replace(answer, text=rationale, output={**output, "rationale": rationale})


app = App(
    tools=TOOLS,
    manifests=(MANIFEST,),
    trees=[group_talk],
    scripts={
        "underwriter": referring_underwriter,
        **{member.agent: scripted_agent(member.script) for member in CAST},
    },
    policy=POLICY,
)
