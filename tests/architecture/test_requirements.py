"""The requirements are kept in the repository, and a test may only claim what is one."""

from __future__ import annotations

import re

from tests.architecture.requirements import ROOT, known, named_by_tests, open_ids


def test_every_id_that_a_test_names_exists() -> None:
    """A requirement that is claimed is one that is written down."""
    unknown = {each: tests for each, tests in named_by_tests().items() if each not in known()}
    assert not unknown


def test_what_no_test_names_is_listed() -> None:
    """The list of requirements that no test names yet is kept in the docs, and is true."""
    page = (ROOT / "docs/reference/requirements_open.md").read_text()
    listed = set(re.findall(r"^- ((?:TT|DA|BP|AW)-\d+)$", page, re.MULTILINE))
    wanted = set(open_ids())
    assert listed == wanted, (
        "docs/reference/requirements_open.md is not current; run `make docs`: "
        f"add {sorted(wanted - listed)}, drop {sorted(listed - wanted)}"
    )
