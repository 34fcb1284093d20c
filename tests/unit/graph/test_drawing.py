"""Pictures of workflows: what is in them, that nothing covers anything, and that no text breaks them."""

from __future__ import annotations

import itertools
import re
import time
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.graph.conftest import HEAD, loan_spec

from casework.graph.drawing import mermaid, svg
from casework.graph.manifests import AiWorkflow

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "a < b && c == \"x\" || d == '<script>' | {y} [z] #35; `\n\x07\u202e -- end"


def workflow(spec: dict[str, Any], name: str = "loan") -> AiWorkflow:
    return AiWorkflow.model_validate({**HEAD, "kind": "AiWorkflow", "metadata": {"name": name}, "spec": spec})


def agents(*edges: tuple[str, str], names: tuple[str, ...] = (), **more: Any) -> AiWorkflow:
    ids = dict.fromkeys([*names, *(name for edge in edges for name in edge if name != "end")])
    nodes = [{"id": name, "type": "AGENT", "agentRef": "writer", "outputKey": "text"} for name in ids]
    listed = [{"from": a, "to": b, **more} for a, b in edges]
    return workflow({"initialNode": next(iter(ids)), "nodes": nodes, "edges": listed})


def shapes_of(text: str) -> dict[str, tuple[float, float, float, float]]:
    """The box of each node: left, top, right, bottom."""
    boxes = {}
    for group in ElementTree.fromstring(text).iter(f"{SVG}g"):
        if "data-node" in group.attrib:
            boxes[group.attrib["data-node"]] = _box(group)
    return boxes


def _box(group: ElementTree.Element) -> tuple[float, float, float, float]:
    for child in group:
        at = child.attrib
        if child.tag == f"{SVG}rect":
            x, y = float(at["x"]), float(at["y"])
            return x, y, x + float(at["width"]), y + float(at["height"])
        if child.tag == f"{SVG}circle":
            x, y, r = float(at["cx"]), float(at["cy"]), float(at["r"])
            return x - r, y - r, x + r, y + r
        if child.tag == f"{SVG}polygon":
            points = [tuple(map(float, point.split(","))) for point in at["points"].split()]
            return (*map(min, zip(*points, strict=True)), *map(max, zip(*points, strict=True)))
    raise AssertionError("a node without a shape")


def apart(boxes: list[tuple[float, float, float, float]]) -> bool:
    return all(
        a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1] for a, b in itertools.combinations(boxes, 2)
    )


def test_the_loan_case_as_mermaid() -> None:
    """AW-12. Node shapes by type, decisions on their edges, one end."""
    assert mermaid(workflow(loan_spec())).splitlines() == [
        "flowchart TD",
        "    accTitle: Workflow loan",
        "    accDescr: Workflow loan: 2 nodes, beginning at underwrite.",
        '    n0("underwrite<br/>AGENT underwriter")',
        '    n1{{"decision<br/>HUMAN_APPROVAL"}}',
        '    n2((("end")))',
        "    n0 --> n1",
        '    n1 -->|"approve"| n2',
        '    n1 -->|"reject"| n2',
        '    n1 -->|"more_info"| n0',
    ]


def test_the_loan_case_as_svg() -> None:
    """AW-12. Title and description for who cannot see it, the nodes, and every edge once."""
    root = ElementTree.fromstring(svg(workflow(loan_spec())))
    assert root.attrib["role"] == "img"
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert desc is not None
    assert title.text == "Workflow loan"
    assert "decision, HUMAN_APPROVAL: to end when approve" in (desc.text or "")
    assert root.attrib["aria-labelledby"].split() == [title.attrib["id"], desc.attrib["id"]]
    assert len([path for path in root.iter(f"{SVG}path") if "marker-end" in path.attrib]) == 4
    labels = [text.text for text in root.iter(f"{SVG}text") if text.attrib["class"] == "cw-label"]
    assert labels == ["approve", "reject", "more_info"]


def test_where_a_run_is_and_how_often_it_was_there() -> None:
    """AW-12. The current node is lit, visits are counted; a node that was not entered has no count."""
    loan = workflow(loan_spec())
    root = ElementTree.fromstring(svg(loan, current="decision", visits={"underwrite": 3}))
    lit = [group.attrib["data-node"] for group in root.iter(f"{SVG}g") if "cw-lit" in group.attrib["class"]]
    counts = [text.text for text in root.iter(f"{SVG}text") if text.attrib["class"] == "cw-count"]
    assert (lit, counts) == (["decision"], ["\N{MULTIPLICATION SIGN}3"])
    text = mermaid(loan, current="decision", visits={"underwrite": 3})
    assert "class n1 lit" in text
    assert "3 visits" in text


def test_error_edges_are_dashed() -> None:
    """AW-12."""
    drawn = workflow(
        loan_spec(edges=[*loan_spec()["edges"], {"from": "underwrite", "to": "decision", "onError": True}])
    )
    assert '-.->|"on error"| n1' in mermaid(drawn)
    assert svg(drawn).count('class="cw-way cw-error"') == 1


def test_branches_are_drawn_inside_their_node() -> None:
    """AW-12. The branches of a PARALLEL or MAP stand inside it."""
    branches = [{"id": name, "type": "TOOL", "tool": "search"} for name in ("web", "files", "mail", "notes", "wiki")]
    spec = {
        "initialNode": "gather",
        "nodes": [
            {"id": "gather", "type": "PARALLEL", "outputKey": "found", "branches": branches},
            {"id": "each", "type": "MAP", "items": "found.web", "outputKey": "sums", "branches": [
                {"id": "sum", "type": "AGENT", "agentRef": "writer"}]},
            {"id": "pause", "type": "WAIT", "duration": "PT15M", "signal": "go"},
        ],
        "edges": [{"from": "gather", "to": "each"}, {"from": "each", "to": "pause"}],
    }  # fmt: skip
    text = svg(workflow(spec))
    root = ElementTree.fromstring(text)
    found = {
        node.attrib["data-node"]: [inner for inner in node.iter(f"{SVG}g") if "data-branch" in inner.attrib]
        for node in root.iter(f"{SVG}g")
        if "data-node" in node.attrib
    }
    assert [inner.attrib["data-branch"] for inner in found["gather"]] == ["web", "files", "mail", "notes", "wiki"]
    outer = shapes_of(text)["gather"]
    boxes = [_box(inner) for inner in found["gather"]]
    assert apart(boxes)
    assert all(b[0] > outer[0] and b[1] > outer[1] and b[2] < outer[2] and b[3] < outer[3] for b in boxes)
    assert "each of found.web" in text
    assert "signal go or PT15M" in text
    lines = mermaid(workflow(spec)).splitlines()
    start = lines.index('    subgraph n0["gather<br/>PARALLEL"]')
    assert lines[start + 6] == "    end"
    assert lines[start + 1] == '        n0_0[["web<br/>TOOL search"]]'


def test_no_text_breaks_a_picture() -> None:
    """AW-12. Quotes, tags, brackets, control and direction characters of a condition stay text."""
    spec = loan_spec()
    spec["edges"][0] = {"from": "underwrite", "to": "decision", "condition": HOSTILE}
    drawn = workflow(spec)
    root = ElementTree.fromstring(svg(drawn))
    tips = [group.findtext(f"{SVG}title") or "" for group in root.iter(f"{SVG}g")]
    assert any("d == '<script>'" in tip for tip in tips)
    assert not any(mark in svg(drawn) for mark in ("<script", "\x07", "\u202e"))
    label = re.search(r'n0 -->\|"(.*)"\| n1\n', mermaid(drawn))
    assert label
    assert not set(label[1]) & set('"<>{}[]|`')


def test_a_node_that_is_not_there_is_shown_so() -> None:
    """A manifest that admission refuses is drawn too: that is how one sees what is wrong."""
    spec = {"initialNode": "a", "nodes": [{"id": "a", "type": "AGENT"}], "edges": [{"from": "a", "to": "nowhere"}]}
    assert "there is no such node" in svg(workflow(spec))
    assert "class n1 missing" in mermaid(workflow(spec))


def test_a_node_without_edges_leads_to_the_end() -> None:
    assert "n0 --> n1" in mermaid(agents(names=("a",)))


def test_a_very_wide_picture_is_turned() -> None:
    """AW-12. Thirty nodes side by side are drawn from left to right, one below the other."""
    fan = [("route", f"kind_{n}") for n in range(30)]
    boxes = shapes_of(svg(agents(*fan, *((b, "sum") for _, b in fan))))
    assert apart(list(boxes.values()))
    assert max(box[2] for box in boxes.values()) < 1200
    assert boxes["route"][2] < boxes["kind_0"][0]
    assert boxes["kind_29"][2] < boxes["sum"][0]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 12)), max_size=40))
def test_nothing_covers_anything(pairs: list[tuple[int, int]]) -> None:
    """AW-12. In any graph, with cycles and ways from a node to itself, no two nodes overlap."""
    names = tuple(f"n{number}" for number in range(12))
    drawn = agents(*((names[a], "end" if b == 12 else names[b]) for a, b in pairs), names=names, condition="x == 1")
    boxes = shapes_of(svg(drawn))
    assert set(names) <= boxes.keys()
    assert apart(list(boxes.values()))
    assert svg(drawn) == svg(drawn)


@pytest.mark.timeout(60)
def test_the_largest_workflow_is_drawn_in_seconds() -> None:
    """A thousand nodes in a ladder with ways back: no layout that takes minutes."""
    edges = [(f"n{i}", f"n{min(i + step, 999)}") for i in range(999) for step in (1, 7)]
    edges += [(f"n{i}", f"n{max(i - 5, 0)}") for i in range(0, 1000, 9)]
    began = time.process_time()
    svg(agents(*edges))
    assert time.process_time() - began < 40
