"""Publishing what an application runs: each workflow and free tree becomes an immutable version, known by its hash."""

from __future__ import annotations

from casework.app import App
from casework.errors import ManifestError
from casework.graph.bundle import PinnedWorkflow
from casework.graph.problems import Problem, named
from casework.store import workflows
from casework.store.database import Database

CARRIED_OUT = ("AGENT", "TOOL", "CONDITION", "HUMAN_APPROVAL", "WAIT", "PARALLEL", "MAP", "SUBWORKFLOW")
"""Node types that a durable run carries out. The others run locally, and are refused here."""
IN_BRANCHES = ("AGENT", "TOOL", "WAIT", "SUBWORKFLOW")
"""The same of branches."""


async def publish(app: App, db: Database, tenant: str = "default") -> dict[str, int]:
    """Write what runs can be started of; returns the version of each. The same content is the same version.

    Raises:
        ManifestError: a manifest is refused at admission, or has a node that no durable run carries out.
        StoreUnavailableError: the database cannot be reached.
    """
    versions = {}
    _check_types(app)
    async with db.transaction() as conn:
        for name, pinned in sorted(app.bundles().items()):
            versions[name] = await workflows.publish(conn, tenant, name, pinned.to_plain(), pinned.hash())
    return versions


def _check_types(app: App) -> None:
    problems = [
        problem for pinned in app.workflows().values() for problem in named(pinned.workflow, _later_types(pinned))
    ]
    if problems:
        raise ManifestError("\n".join(problems))


def _later_types(pinned: PinnedWorkflow) -> list[Problem]:
    what = "node type {} is not available in this release for durable runs. Run it with `casework runs start --local`."
    inside = "branch {!r} is of type {}, which is not available there in this release for durable runs. "
    found = []
    for at, node in enumerate(pinned.workflow.spec.nodes):
        if node.type not in CARRIED_OUT:
            found.append(Problem(f"node {node.id!r}", what.format(node.type), ("nodes", at, "type")))
        for number, branch in enumerate(node.branches or ()):
            if branch.type not in IN_BRANCHES:
                text = inside.format(branch.id, branch.type) + "Run it with `casework runs start --local`."
                found.append(Problem(f"node {node.id!r}", text, ("nodes", at, "branches", number, "type")))
    return found
