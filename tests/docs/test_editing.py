"""The page about editing a workflow: each edit is made, and what it says is what one gets."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from casework import App
from casework.errors import ManifestError
from casework.examples.loan_underwriting.application import MANIFEST
from casework.examples.loan_underwriting.script import underwriter
from casework.examples.loan_underwriting.tools import TOOLS
from tests.docs.pages import ROOT, Block, blocks

PAGE = ROOT / "docs/how_to/edit_a_workflow.md"
BLOCKS = blocks(PAGE)
EDITS = [(edit, told) for edit, told in pairwise(BLOCKS) if edit.language == "diff"]
ALONE = [told for before, told in pairwise(BLOCKS) if told.language == "text" and before.language != "diff"]


def edited(text: str, edit: Block) -> str:
    """`text` with the lines of a diff replaced, which must be there exactly once."""
    lines = edit.text.splitlines()
    before = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "+")
    after = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "-")
    assert text.count(before) == 1, f"{edit.where}: the manifest has these lines {text.count(before)} times"
    return text.replace(before, after)


def admission(folder: Path, text: str, tools: tuple[object, ...] = TOOLS) -> str:
    file = folder / "loan-underwriting.yaml"
    file.write_text(text)
    try:
        App(tools=tools, manifests=(file,), scripts={"underwriter": underwriter}).workflows()  # type: ignore[arg-type]  # tools
    except ManifestError as error:
        return str(error).replace(str(file), file.name)
    return "admitted"


@pytest.mark.parametrize(("edit", "told"), EDITS, ids=lambda block: block.where)
def test_an_edit_does_what_the_page_says(edit: Block, told: Block, tmp_path: Path) -> None:
    """AW-5. A second approval, a tool removed, a typo: admitted, or refused with the message that the page shows."""
    assert told.language == "text"
    assert admission(tmp_path, edited(MANIFEST.read_text(), edit)) == told.text.rstrip("\n")


def test_a_tool_that_only_the_app_lost_is_refused(tmp_path: Path) -> None:
    """AW-5. The manifest still names it."""
    assert [admission(tmp_path, MANIFEST.read_text(), TOOLS[:3])] == [told.text.rstrip("\n") for told in ALONE]
