"""A run of a free tree that stays with the build of the worker that began it.

The code of a free tree is its user's, and has no patch points of ours. So where workers have builds, its runs move on
to no other: the workflow class says so. Workers without builds may not say it, hence two classes.
"""

from __future__ import annotations

from temporalio import workflow
from temporalio.common import VersioningBehavior

with workflow.unsafe.imports_passed_through():
    from casework.durable import contracts
    from casework.durable.contracts import RunEnd, RunStart
    from casework.durable.workflows.trees import TreeRun


@workflow.defn(name=contracts.TREE_WORKFLOW, versioning_behavior=VersioningBehavior.PINNED)
class StayingTreeRun(TreeRun):
    """`TreeRun`, on workers that have a build."""

    @workflow.init
    def __init__(self, start: RunStart) -> None:
        super().__init__(start)

    @workflow.run
    async def run(self, start: RunStart) -> RunEnd:
        """Run the tree to its end, then write the end."""
        return await self.through(start)
