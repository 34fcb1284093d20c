"""An application is one object: its tools, its manifests, and what else a worker needs to run them.

Worker, API and command line load the same one, by `package.module:attribute`. Nothing is read or admitted until it is
asked for, so that making an App costs nothing and its module can be imported anywhere.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from casework.errors import InputError, ManifestError, NotFoundError, TreeDeclarationError

if TYPE_CHECKING:
    from dishka import Provider

    from casework.agents.toolbox import Toolbox
    from casework.agents.tools import Tool
    from casework.graph.bundle import PinnedWorkflow
    from casework.graph.manifests import Manifest
    from casework.policy import PolicyLimits
    from casework.process.injection import Injector
    from casework.process.lines import BusinessProcess, Line
    from casework.process.policies import ErrorPolicy
    from casework.process.statuses import StatusSet
    from casework.rehearsal import Rehearsal
    from casework.trees.bundle import Pinned, PinnedTree
    from casework.trees.definition import FreeTree

CONFIG = "casework.toml"
"""The file in the working folder that names the App, as in `app = "shop.casework:app"`."""


class App:
    """An application of this platform.

    Args:
        tools: functions made tools by `@tool`; their names are unique.
        manifests: files (a path, or a resource of a package) and ready manifests, in any mixture.
        providers: ready `LlmProvider` manifests beside those in `manifests`.
        trees: functions made free trees by `@free_tree`. Several versions of one may be given: a new run takes the
            newest, and a run that is open the one that it was started with.
        scripts: scripted models by the name that a provider of type `scripted` refers to.
        policy: the shipped policy file (CSV, JSON, YAML), used where the setting CASEWORK_POLICY_FALLBACK is `fixture`.
        rehearsal: what `casework demo` and `casework drill` run; an application without one has neither.
        processes: business processes; their names are unique.
        modules: dishka Providers of what the constructors of Tasks and Monitors ask for.
        statuses: those of its Transactions; None: the default ones.
        errors: what follows when a Task fails, where neither Task nor process says; None: the default policy.
        entities: names of its own tables whose rows belong to Transactions and must be guarded as these are, such as
            `public.invoices`.
        monitors: the JSON configuration of Monitors, a file or its content; the setting CASEWORK_MONITORS goes before
            it.

    Raises:
        ToolDeclarationError: two tools have one name, or a thing is no tool.
        TreeDeclarationError: two trees have one name and version, or a thing is no tree.
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        manifests: Iterable[str | Path | Traversable | Manifest] = (),
        providers: Iterable[Manifest] = (),
        trees: Iterable[FreeTree] = (),
        scripts: Mapping[str, Any] | None = None,
        policy: Path | None = None,
        rehearsal: Rehearsal | None = None,
        *,
        processes: Iterable[BusinessProcess] = (),
        modules: Iterable[Provider] = (),
        statuses: StatusSet | None = None,
        errors: ErrorPolicy | None = None,
        entities: Iterable[str] = (),
        monitors: Path | Traversable | Mapping[str, Any] | None = None,
    ) -> None:
        from casework.agents.toolbox import Toolbox  # noqa: PLC0415 - `import casework.app` stays quick

        self.toolbox: Toolbox = Toolbox(tools)
        self.manifests = tuple([manifests] if isinstance(manifests, (str, Path)) else manifests)
        self.providers = tuple(providers)
        self.trees = _checked_trees(trees)
        self.scripts: Mapping[str, Any] = MappingProxyType(dict(scripts or {}))
        self.policy = policy
        self.rehearsal = rehearsal
        self.processes = tuple(processes)
        self.modules = tuple(modules)
        self.errors = errors
        self.entities = tuple([entities] if isinstance(entities, str) else entities)
        self.monitors = monitors
        self._given_statuses = statuses

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in the order given."""
        return tuple(self.toolbox)

    def with_manifests(self, manifests: Iterable[Manifest]) -> App:
        """The same application with `manifests` beside its own, and instead of those of the same kind and name.

        Raises:
            ManifestError: a file of its own cannot be read.
        """
        added = list(manifests)
        taken = {(made.kind, made.name) for made in added}
        own = [made for made in _read((*self.manifests, *self.providers)) if (made.kind, made.name) not in taken]
        return App(
            self.tools,
            [*own, *added],
            (),
            self.trees,
            self.scripts,
            self.policy,
            self.rehearsal,
            processes=self.processes,
            modules=self.modules,
            statuses=self._given_statuses,
            errors=self.errors,
            entities=self.entities,
            monitors=self.monitors,
        )

    def workflows(self) -> Mapping[str, PinnedWorkflow]:
        """The admitted workflows by name; files are read and manifests admitted on the first call.

        Raises:
            ManifestError: a file cannot be read, or a manifest is refused; lists every problem.
        """
        return self._workflows

    def workflow(self, name: str) -> PinnedWorkflow:
        """The admitted workflow of that name.

        Raises:
            ManifestError: as `workflows`.
            NotFoundError: there is none; suggests a near name.
        """
        found = self._workflows.get(name)
        if found is None:
            raise NotFoundError(f"There is no workflow {name!r}; {_choices(name, self._workflows)}")
        return found

    def bundles(self) -> Mapping[str, Pinned]:
        """What a run can be started of, by name: the admitted workflows, and of each free tree the newest version.

        Raises:
            ManifestError: as `workflows`; or what a tree may ask is refused, or has the name of a workflow.
        """
        return self._bundles

    @property
    def statuses(self) -> StatusSet:
        """The statuses of its Transactions."""
        from casework.process.statuses import DEFAULT_STATUSES  # noqa: PLC0415 - as above

        return self._given_statuses or DEFAULT_STATUSES

    def lines(self) -> Mapping[str, Line]:
        """The admitted processes by name; they are admitted on the first call.

        Raises:
            ProcessDeclarationError: a process is refused; lists the problems of all.
        """
        return self._lines

    def injector(self, *platform: Provider) -> Injector:
        """A new injector for the Tasks and Monitors of all processes; whoever asks for it closes it.

        What a module of the application provides goes before the same of `platform`.

        Raises:
            ProcessDeclarationError: as `lines`; or a provider is missing for a Task or Monitor, which is named.
        """
        from casework.process.injection import injector, users_of  # noqa: PLC0415 - as above

        return injector(users_of(self.lines().values()), (*platform, *self.modules))

    def fixture_limits(self, purpose: str) -> PolicyLimits | None:
        """The shipped limits of a normalised purpose, or None.

        Raises:
            PolicyFileError: the shipped file is refused.
        """
        return self._fixtures.get(purpose)

    @cached_property
    def _fixtures(self) -> Mapping[str, PolicyLimits]:
        from casework.policy.files import form_of, parse_policy  # noqa: PLC0415 - as above

        if self.policy is None:
            return {}
        parsed = parse_policy(self.policy.read_text(encoding="utf-8"), form_of(self.policy.name), self.policy.name)
        return {row.purpose: row for row in parsed.limits}

    @cached_property
    def _lines(self) -> Mapping[str, Line]:
        from casework.process.admission import admit_all  # noqa: PLC0415 - as above

        return MappingProxyType(admit_all(self.processes, self.statuses) if self.processes else {})

    @cached_property
    def _workflows(self) -> Mapping[str, PinnedWorkflow]:
        from casework.graph.admission import admit  # noqa: PLC0415 - as above

        tools = {schema.name: schema.parameters for schema in self.toolbox.schemas()}
        trees = {name: tree.to_plain() for name, tree in self._pinned_trees.items()}
        found = _read((*self.manifests, *self.providers))
        admitted = admit(found, tools, scripts=self.scripts, trees=trees, quick=self.toolbox.quick)
        return MappingProxyType({pinned.name: pinned for pinned in admitted})

    @cached_property
    def _bundles(self) -> Mapping[str, Pinned]:
        made: dict[str, Pinned] = dict(self._workflows)
        for name, tree in self._pinned_trees.items():
            if name in self._workflows:
                raise ManifestError(f"Free tree {name!r} has the name of a workflow. Rename one of the two.")
            made[name] = tree
        return MappingProxyType(made)

    @cached_property
    def _pinned_trees(self) -> Mapping[str, PinnedTree]:
        """The newest version of each free tree."""
        from casework.trees.admission import admit_tree  # noqa: PLC0415 - as above

        made: dict[str, PinnedTree] = {}
        for tree in sorted(self.trees, key=lambda each: each.version):
            own = _read((*tree.agents, *tree.providers))
            made[tree.name] = admit_tree(tree, own, self.toolbox.names, scripts=self.scripts)
        return made


def _checked_trees(trees: Iterable[FreeTree]) -> tuple[FreeTree, ...]:
    from casework.trees.definition import FreeTree  # noqa: PLC0415 - as above

    made: dict[tuple[str, int], FreeTree] = {}
    for tree in trees:
        if not isinstance(tree, FreeTree):
            raise TreeDeclarationError(f"{tree!r:.100} is no free tree. Decorate the function with @free_tree(...).")
        if made.setdefault((tree.name, tree.version), tree) is not tree:
            raise TreeDeclarationError(
                f"Two free trees are named {tree.name!r} with version {tree.version}. Rename one, or raise its version."
            )
    return tuple(made.values())


def _read(sources: Iterable[str | Path | Traversable | Manifest]) -> list[Manifest]:
    made: list[Manifest] = []
    problems: list[str] = []
    for source in sources:
        try:
            made += _manifests(source)
        except ManifestError as error:
            problems.append(str(error))
    if problems:
        raise ManifestError("\n".join(problems))
    return made


def _manifests(source: str | Path | Traversable | Manifest) -> list[Manifest]:
    from casework.graph.loading import load  # noqa: PLC0415 - as above
    from casework.graph.manifests import AiAgent, AiWorkflow, LlmProvider  # noqa: PLC0415 - as above

    if isinstance(source, (AiWorkflow, AiAgent, LlmProvider)):
        return [source]
    place = Path(source) if isinstance(source, str) else source
    if not isinstance(place, (Path, Traversable)):
        raise ManifestError(f"{source!r:.100} is no manifest. Pass a file's path, or a manifest.", field="manifests")
    try:
        content = place.read_bytes()
    except (OSError, ValueError) as error:
        raise ManifestError(
            f"{place}: this file cannot be read: {getattr(error, 'strerror', None) or error}. Correct the path.",
            field="manifests",
        ) from None
    return load(content, place.name if not isinstance(place, Path) else str(place))


def load_app(reference: str | None = None, *, environment: str | None = None, folder: Path | None = None) -> App:
    """The application that `reference` names as `package.module:attribute`.

    Without one, `environment` (the value of CASEWORK_APP) is taken, else `app` in `casework.toml` in `folder`. Modules
    in `folder`, the working folder unless given, can be imported.

    Raises:
        InputError: nothing names an application, or what is named is not there, is no App, or fails on import.
    """
    folder = (folder or Path.cwd()).resolve()
    found, origin = _reference(reference, environment, folder)
    app = load_object(found, origin, "application", folder)
    if not isinstance(app, App):
        hint = " Leave out the call and name the App itself." if callable(app) else ""
        raise InputError(f"{origin}: {found!r} is of type {type(app).__name__}, not an App.{hint}", field="app")
    return app


def load_object(
    reference: str,
    origin: str,
    what: str,
    folder: Path | None = None,
    alike: Callable[[Any], bool] = lambda found: isinstance(found, App),
) -> Any:
    """What `reference` names as `package.module:attribute`; modules in `folder` (the working one) can be imported.

    `origin` is where the reference stands, and `what` what it should name, for messages; where it is not there, those
    are named that are `alike`.

    Raises:
        InputError: it is not written so, or what it names is not there or fails on import.
    """
    module_name, colon, attribute = reference.strip().partition(":")
    if not colon or not module_name or not attribute:
        raise InputError(
            f"{origin} is {reference!r}: that names no {what}. Write it as package.module:attribute.", field="app"
        )
    return _attribute(_module(module_name, (folder or Path.cwd()).resolve(), origin), attribute, origin, alike)


def _reference(reference: str | None, environment: str | None, folder: Path) -> tuple[str, str]:
    if reference is not None:
        return reference, "--app"
    if environment is not None and environment.strip():
        return environment, "CASEWORK_APP"
    file = folder / CONFIG
    try:
        configured = tomllib.loads(file.read_text("utf-8")).get("app")
    except FileNotFoundError:
        raise InputError(
            f"No application is named. Pass --app package.module:attribute, set CASEWORK_APP, or write "
            f'app = "package.module:attribute" into {file}.',
            field="app",
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}. Correct it.", field="app") from None
    if not isinstance(configured, str):
        raise InputError(f'{file} names no application. Write app = "package.module:attribute" into it.', field="app")
    return configured, str(file)


def _module(name: str, folder: Path, origin: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise InputError(f"{origin}: {name!r} is no module's name. Write it as package.module.", field="app")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(
                f"{origin}: there is no module {error.name!r} in {folder} or among the installed packages. "
                "Correct the name, or run in the folder that has it.",
                field="app",
            ) from None
        raise _failed(name, origin, error) from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise _failed(name, origin, error) from error


def _failed(name: str, origin: str, error: BaseException) -> InputError:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    where = f" at {own[-1].filename}:{own[-1].lineno}" if own else ""
    return InputError(f"{origin}: importing {name!r} fails{where}: {type(error).__name__}: {error}", field="app")


def _attribute(module: ModuleType, path: str, origin: str, alike: Callable[[Any], bool]) -> Any:
    found: Any = module
    for name in path.split("."):
        if not hasattr(found, name):
            wanted = [key for key, value in vars(module).items() if alike(value)]
            names = wanted or [key for key in vars(module) if not key.startswith("_")]
            raise InputError(f"{origin}: {module.__name__} has no {path!r}; {_choices(path, names)}", field="app")
        found = getattr(found, name)
    return found


def _choices(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    there_are = f"there are {', '.join(names[:20])}." if names else "there are none."
    return there_are + (f" Did you mean {near[0]!r}?" if near else "")
