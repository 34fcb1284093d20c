"""Writing free trees down, and what is refused before any of them runs."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.integration.durable.apps import weigh

from casework.agents import ModelAnswer, ModelRequest
from casework.app import App
from casework.durable.contracts import task_seconds
from casework.errors import ManifestError, TreeDeclarationError
from casework.graph.bundle import PinnedWorkflow
from casework.graph.loading import load
from casework.tasktree import Job
from casework.trees import FreeTree, TreeContext, free_tree
from casework.trees.bundle import PinnedTree, pinned_from_plain
from casework.values import dumps, loads

AGENT = """
apiVersion: casework.dev/v1alpha1
kind: AiAgent
metadata: {name: ada}
spec: {provider: scripts}
---
apiVersion: casework.dev/v1alpha1
kind: LlmProvider
metadata: {name: scripts}
spec: {type: scripted, script: says}
"""
WORKFLOW = """
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: talk}
spec:
  initialNode: act
  nodes: [{id: act, type: AGENT, agentRef: ada, outputKey: answer}]
"""


def says(_: ModelRequest) -> ModelAnswer:
    return ModelAnswer(text="so")


async def body(ctx: TreeContext) -> None:
    """Nothing."""


def talk(version: int = 1, **given: Any) -> FreeTree:
    return free_tree("talk", version=version, **{"agents": load(AGENT, "agent"), **given})(body)


def app(*trees: Any, **given: Any) -> App:
    return App(trees=trees, scripts={"says": says}, **given)


@pytest.mark.parametrize("name", ["", "Talk", "a b", "-a", "a.b", "x" * 64, "ä", 5, None])
def test_a_name_is_that_of_a_resource(name: Any) -> None:
    """It becomes a path, and a workflow's name in the API."""
    with pytest.raises(TreeDeclarationError, match="name"):
        free_tree(name, version=1)


@pytest.mark.parametrize("version", [0, -1, 1.0, True, "1", None, 2**31])
def test_a_version_counts_from_one(version: Any) -> None:
    """It is a whole number."""
    with pytest.raises(TreeDeclarationError, match="version"):
        free_tree("talk", version=version)


@pytest.mark.parametrize("most", [0, 45_001, 10.5, None])
def test_a_history_stays_below_the_engines_limit(most: Any) -> None:
    """DA-20. The bound is below what the engine takes."""
    with pytest.raises(TreeDeclarationError, match="max_events"):
        free_tree("talk", version=1, max_events=most)


@pytest.mark.parametrize("thing", [lambda _: None, Job("x"), None, str, says])
def test_a_tree_is_an_async_function_or_a_job_class(thing: Any) -> None:
    """TT-20. Anything else is refused where it is written."""
    with pytest.raises(TreeDeclarationError, match="async def"):
        free_tree("talk", version=1)(thing)


def test_an_app_tells_its_trees_apart() -> None:
    """Name and version are a tree's own; the same tree twice is one."""
    first, second = talk(1), talk(2)
    assert app(first, second, first).trees == (first, second)
    with pytest.raises(TreeDeclarationError, match="Two free trees are named 'talk' with version 1"):
        app(first, talk(1))
    with pytest.raises(TreeDeclarationError, match="no free tree"):
        app(body)


def test_a_new_run_is_of_the_newest_version() -> None:
    """AW-2. Whatever the order in which they are given."""
    made = app(talk(2), talk(10), talk(1)).bundles()
    assert list(made) == ["talk"]
    [pinned] = made.values()
    assert isinstance(pinned, PinnedTree)
    assert (pinned.version, list(pinned.agents), list(pinned.providers)) == (10, ["ada"], ["scripts"])


def test_what_is_pinned_comes_back_the_same() -> None:
    """AW-2. Equal content, equal hash; a stored bundle is known as what it was."""
    schema = {"type": "object", "properties": {"topic": {"type": "string"}}}
    made = app(
        talk(3, input=schema, max_events=500), manifests=load(WORKFLOW.replace("talk", "graph") + "---" + AGENT, "")
    )
    pinned, graph = made.bundles()["talk"], made.bundles()["graph"]
    again = pinned_from_plain(loads(dumps(pinned.to_plain())))
    assert isinstance(again, PinnedTree)
    assert (again, again.hash()) == (pinned, pinned.hash())
    assert (again.input_schema, again.max_events) == (schema, 500)
    assert isinstance(pinned_from_plain(graph.to_plain()), PinnedWorkflow)
    assert talk(3).version == 3
    assert app(talk(4)).bundles()["talk"].hash() != app(talk(3)).bundles()["talk"].hash()


@pytest.mark.parametrize("broken", [{"tree": {}}, {"tree": 5}, {"tree": {"name": "a", "version": 1, "maxEvents": 9}}])
def test_a_stored_bundle_that_does_not_hold_is_refused(broken: Any) -> None:
    """By name, and not by an accident later."""
    with pytest.raises(ManifestError, match="no pinned free tree"):
        pinned_from_plain(broken)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"agents": load(AGENT.partition("---")[0], "")}, "there is no LlmProvider 'scripts'"),
        ({"agents": load(AGENT.replace("says", "sings"), "")}, "there is no script 'sings'"),
        ({"agents": load(AGENT.replace("scripts}\n---", "scripts, tools: [look]}\n---"), "")}, "no registered tool"),
        ({"agents": load(WORKFLOW + "---" + AGENT, "")}, "'talk' is a workflow"),
        ({"agents": [5]}, "is no manifest"),
        ({"agents": "nowhere.yaml"}, "cannot be read"),
        ({"input": {"type": "array"}}, "type is 'array'"),
        ({"input": {"type": 5}}, "no JSON Schema"),
    ],
)
def test_whom_a_tree_may_ask_is_admitted(given: dict[str, Any], told: str) -> None:
    """As the agents of a workflow are; every problem names the tree."""
    with pytest.raises(ManifestError, match=told):
        app(talk(**given)).bundles()


def test_an_agent_of_a_tree_has_no_tools() -> None:
    """The tree itself calls tools, so an agent's list of them would promise what is not kept."""
    agents = load(AGENT.replace("scripts}\n---", "scripts, tools: [weigh]}\n---"), "")
    with pytest.raises(ManifestError, match="lists tools"):
        app(talk(agents=agents), tools=[weigh]).bundles()


def test_a_tree_has_no_workflows_name() -> None:
    """A run is started by one name."""
    with pytest.raises(ManifestError, match="the name of a workflow"):
        app(talk(), manifests=load(WORKFLOW + "---" + AGENT, "")).bundles()


def test_agents_come_from_files_too(tmp_path: Path) -> None:
    """As an App's manifests do."""
    file = tmp_path / "agents.yaml"
    file.write_text(AGENT)
    for given in (file, str(file), [file]):
        assert list(app(talk(agents=given)).bundles()["talk"].agents) == ["ada"]


def test_a_worker_finds_a_tree_by_its_module() -> None:
    """TT-22. What lies in a function, or in a script that is run, cannot be loaded in the sandbox, and is refused."""
    with pytest.raises(TreeDeclarationError, match="cannot be found again"):
        talk().place()
    module = ModuleType("made_for_this_test")
    sys.modules[module.__name__] = module
    try:

        async def inner(_: TreeContext) -> None:
            """Nothing."""

        inner.__module__ = module.__name__
        vars(module)["some_name"] = free_tree("inner", version=1)(inner)
        assert vars(module)["some_name"].place() == ("made_for_this_test", "some_name")
    finally:
        del sys.modules[module.__name__]


def test_the_engine_waits_longer_for_a_worker_that_has_a_longer_history_to_read() -> None:
    """DA-20. A second for each thousand events; up to ten seconds it is the engine's own default."""
    seconds = [
        task_seconds(app(talk(max_events=events)).bundles()["talk"].to_plain()) for events in (500, 10_000, 45_000)
    ]
    assert seconds == [None, None, 45]
    graph = app(manifests=load(WORKFLOW + "---" + AGENT, "")).bundles()["talk"]
    assert task_seconds(graph.to_plain()) is None
