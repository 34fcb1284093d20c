"""Places of a request, as its server tells them, are told as places in files."""

from __future__ import annotations

import pytest

from casework.graph.origins import Origin, in_files, sent

FILE = Origin("desk.yaml", {(): 3, ("spec",): 6, ("spec", "nodes", 1, "tool"): 9, ("spec", "labels"): 12})


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        (sent(0).at(("spec", "nodes", 1, "tool")) + ": no", "desk.yaml:9: spec.nodes[1].tool: no"),
        ("manifests[0].spec.nodes.1.tool is bad.", "desk.yaml:9: spec.nodes[1].tool is bad."),
        ("manifests[0].spec.input.to is required", "desk.yaml:6: spec.input.to is required"),
        (sent(0).at(("spec", "labels", "a/b")), "desk.yaml:12: spec.labels['a/b']"),
        ("manifests[0].", "desk.yaml:3."),
        ("manifests[1].spec.x is made in code", "manifests[1].spec.x is made in code"),
        ("manifests[7].spec.x was not sent", "manifests[7].spec.x was not sent"),
        ("manifests holds two", "manifests holds two"),
    ],
)
def test_a_place_in_a_request_is_told_as_one_in_its_file(told: str, meant: str) -> None:
    """AW-2. With the line of the part, or of the nearest around it."""
    assert in_files(told, [FILE, None]) == meant
