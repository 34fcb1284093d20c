"""The workflow that a manual task is a run of: one question to a person, and the decision is the outcome.

It is built in and no manifest of anybody's. Which decisions there are follows from the question, so each set of them is
a version of its own, found again by its hash; none is the latest, so nobody starts one by its name.
"""

from __future__ import annotations

from collections.abc import Sequence

from casework.graph.admission import admit
from casework.graph.bundle import PinnedWorkflow
from casework.graph.manifests import END, AiWorkflow

MANUAL_TASK = "manual-task"
NODE = "ask"


def manual_workflow(words: Sequence[str]) -> PinnedWorkflow:
    """The workflow that offers `words`.

    Raises:
        ManifestError: one is no name of a decision.
    """
    asks = {"id": NODE, "type": "HUMAN_APPROVAL", "decisions": [{"name": word, "outcome": word} for word in words]}
    edges = [{"from": NODE, "to": END, "condition": word} for word in words]
    made = AiWorkflow.model_validate(
        {
            "apiVersion": "casework.dev/v1alpha1",
            "kind": "AiWorkflow",
            "metadata": {"name": MANUAL_TASK},
            "spec": {"initialNode": NODE, "nodes": [asks], "edges": edges},
        }
    )
    (pinned,) = admit([made], ())
    return pinned
