"""The App and how it is found."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import pytest

import casework
from casework import App, load_app, tool
from casework.errors import InputError, ManifestError, NotFoundError, ToolDeclarationError
from casework.graph.loading import load

MANIFESTS = """
apiVersion: casework.dev/v1alpha1
kind: LlmProvider
metadata: {name: scripted}
spec: {type: scripted, script: loan}
---
apiVersion: casework.dev/v1alpha1
kind: AiAgent
metadata: {name: underwriter}
spec: {provider: scripted, tools: [look_up]}
---
apiVersion: casework.dev/v1alpha1
kind: AiWorkflow
metadata: {name: loan}
spec:
  initialNode: underwrite
  nodes: [{id: underwrite, type: AGENT, agentRef: underwriter, outputKey: answer}]
"""


@tool(effects=False)
def look_up(key: str) -> str:
    """Look something up."""
    return key


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "lo an.yaml"
    path.write_text(MANIFESTS)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A working folder whose modules are forgotten afterwards."""
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


Write = Callable[[str, str], None]


@pytest.fixture
def write(folder: Path) -> Write:
    def put(name: str, text: str) -> None:
        (folder / name).write_text(text)

    return put


def test_workflows_are_admitted_once_when_asked_for(manifest: Path) -> None:
    app = App(tools=[look_up], manifests=[manifest], scripts={"loan": object()})
    assert list(app.workflows()) == ["loan"]
    manifest.unlink()
    assert app.workflow("loan") is app.workflows()["loan"]


def test_manifests_are_paths_resources_or_ready(manifest: Path) -> None:
    scripts = {"loan": object()}
    for manifests in ([str(manifest)], [manifest], load(MANIFESTS)):
        assert list(App(tools=[look_up], manifests=manifests, scripts=scripts).workflows()) == ["loan"]
    resource = files("casework") / "__init__.py"
    with pytest.raises(ManifestError, match=r"__init__\.py"):
        App(manifests=[resource]).workflows()


def test_a_single_path_is_one_manifest(manifest: Path) -> None:
    assert App(tools=[look_up], manifests=str(manifest), scripts={"loan": 1}).workflows()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    app = App(manifests=[tmp_path / "gone.yaml", tmp_path, "a\x00b"])
    with pytest.raises(ManifestError) as caught:
        app.workflows()
    for part in ("gone.yaml: this file cannot be read: No such file", "Is a directory", "null"):
        assert part in str(caught.value)


def test_what_is_no_manifest_is_refused() -> None:
    with pytest.raises(ManifestError, match="42 is no manifest"):
        App(manifests=[42]).workflows()  # type: ignore[list-item]  # the mistake under test


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ToolDeclarationError, match="look_up"):
        App(tools=[look_up, look_up])


def test_an_unknown_workflow_suggests_a_near_name(manifest: Path) -> None:
    app = App(tools=[look_up], manifests=[manifest], scripts={"loan": 1})
    with pytest.raises(NotFoundError, match="Did you mean 'loan'"):
        app.workflow("laon")


def test_an_app_is_found_by_reference_environment_or_file(folder: Path, write: Write) -> None:
    """The same application for worker, API and command line."""
    write("shop_one.py", "from casework import App\napp = App()\nclass Box: inner = app\n")
    write("casework.toml", 'app = "shop_one:app"\n')
    app = load_app("shop_one:app", folder=folder)
    assert load_app(environment="shop_one:app", folder=folder) is app
    assert load_app(environment=" ", folder=folder) is app
    assert load_app(folder=folder) is app
    assert load_app("shop_one:Box.inner", folder=folder) is app


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("", "names no application"),
        ("shop_two", "package.module:attribute"),
        (":app", "package.module:attribute"),
        ("shop_two:", "package.module:attribute"),
        ("no_such_module_here:app", "there is no module 'no_such_module_here'"),
        ("shop_two.inner:app", "shop_two"),
        ("../shop:app", "is no module's name"),
        ("shop two:app", "is no module's name"),
        ("shop_two:ap", "Did you mean 'app'?"),
        ("shop_two:make", "is of type function, not an App. Leave out the call"),
        ("shop_two:number", "is of type int, not an App"),
    ],
)
def test_a_reference_that_names_no_app_says_what_to_do(folder: Path, write: Write, reference: str, says: str) -> None:
    write("shop_two.py", "from casework import App\napp = App()\nnumber = 1\ndef make(): return app\n")
    with pytest.raises(InputError) as caught:
        load_app(reference, folder=folder)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nothing_like_this\n", "ModuleNotFoundError: No module named 'nothing_like_this'"),
        ("\n1 / 0\n", "shop_bad.py:2: ZeroDivisionError"),
        ("def\n", "SyntaxError"),
        ("raise SystemExit('bye')\n", "SystemExit: bye"),
        ("from casework import nope\n", "nope"),
    ],
)
def test_an_error_inside_the_module_is_shown(folder: Path, write: Write, text: str, says: str) -> None:
    write("shop_bad.py", text)
    with pytest.raises(InputError) as caught:
        load_app("shop_bad:app", folder=folder)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "No application is named"),
        ("[[", "cannot be read"),
        ("x = 1", "names no application"),
        ("app = 5", "app ="),
    ],
)
def test_a_missing_or_broken_file_says_so(folder: Path, write: Write, text: str | None, says: str) -> None:
    if text is not None:
        write("casework.toml", text)
    with pytest.raises(InputError) as caught:
        load_app(folder=folder)
    assert says in str(caught.value)


def test_importing_the_package_is_quick() -> None:
    """The command line starts in well under half a second."""
    heavy = "{'pydantic', 'temporalio', 'psycopg', 'fastapi', 'liquid', 'pydantic_ai', 'casework.app'}"
    code = f"import sys, casework; assert not {heavy} & set(sys.modules)"
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert time.monotonic() - began < 2


def test_public_names_are_there_and_no_others() -> None:
    for name in casework.__all__:
        assert getattr(casework, name) is not None
        assert name in dir(casework)
    with pytest.raises(AttributeError, match="nope"):
        casework.nope  # noqa: B018 - the access is what is tested
