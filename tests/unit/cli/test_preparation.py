"""What `casework dev` sees to before it starts workers."""

from __future__ import annotations

import pytest

from casework.app import App
from casework.cli.preparation import prepare
from casework.errors import TreeDeclarationError
from casework.settings import Settings
from casework.trees import TreeContext, free_tree


async def test_a_tree_that_no_worker_could_load_is_refused_first() -> None:
    """Before the database is touched: its workers would say so, end, and be started again."""

    @free_tree("inner", version=1)
    async def inner(_: TreeContext) -> None:
        """Cannot be found in its module."""

    with pytest.raises(TreeDeclarationError, match="cannot be found again"):
        await prepare(App(trees=[inner]), Settings())
