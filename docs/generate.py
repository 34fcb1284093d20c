"""Writes the pages of the reference that follow from the code: `make docs`, or `python -m docs.generate`.

Each page has a function that gives its text; `pages` gives them all, and a test holds them against the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import click

from docs import command_pages, event_page, http_page, manifest_page, schema_files
from docs.markdown import GENERATED, cell, table

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"


def pages() -> dict[Path, str]:
    """Every generated page and schema by its file."""
    makers: Mapping[str, Callable[[], str]] = {
        "settings.md": settings,
        "cli.md": command_pages.commands,
        "exit_codes.md": command_pages.exit_codes,
        "errors.md": errors,
        "http.md": http_page.http,
        "manifests.md": manifest_page.manifests,
        "events.md": event_page.events,
        "requirements_open.md": requirements_open,
    }
    made = {REFERENCE / name: maker().rstrip() + "\n" for name, maker in makers.items()}
    return made | {ROOT / "docs" / "schemas" / name: text for name, text in schema_files.files().items()}


def settings() -> str:
    """All settings, part by part."""
    from casework.settings import list_settings  # noqa: PLC0415  # one page's import must not break the others
    from casework.settings.whole import parts  # noqa: PLC0415

    found = list_settings()
    text = [
        GENERATED,
        "# Settings",
        "Settings are environment variables, read once when a process starts. An empty variable counts as not set. A "
        "`CASEWORK_` variable that is "
        "no setting is an error that names the nearest one, so a typo never goes unnoticed. Secrets show stars "
        "wherever they are printed.",
        "API and workers read the same ones. Commands on the stack of `casework dev` find its servers and its token "
        "by themselves, in the home folder; "
        "what the environment names goes before.",
    ]
    for part, cls in parts().items():
        rows = [
            (f"`{each.name}`", each.type, f"`{each.default}`" if each.default else "", each.doc)
            for each in found
            if each.part == part
        ]
        text += [f"## {_heading(cls.__doc__)}", table(("variable", "type", "default", "what it is"), rows)]
    return "\n\n".join(text)


def _heading(doc: str | None) -> str:
    return (doc or "").split("\n", 1)[0].partition(".")[0]


def errors() -> str:
    """The error classes: the tree, and what each means at every door."""
    from casework import errors as module  # noqa: PLC0415
    from casework.tasktree import errors as tree_errors  # noqa: PLC0415

    public = [cls for cls in vars(module).values() if _is_error(cls, module.CaseworkError)]
    tree = [cls for cls in vars(tree_errors).values() if _is_error(cls, tree_errors.TreeError)]
    rows = [(f"`{cls.__name__}`", command_pages.code_of(cls), http_page.status_of(cls), _doc(cls)) for cls in public]
    return "\n\n".join(
        [
            GENERATED,
            "# Errors",
            "Every error that a user can meet, named by what the caller can do about it. Each message says what, "
            "which value, and what to do. "
            "All are in `casework.errors`.",
            f"```text\n{_tree(module.__doc__)}\n```",
            "The exit code is that of the command line ([all codes](exit_codes.md)), the status that of the HTTP "
            "API ([problem documents](http.md#problems)).",
            table(("class", "exit code", "HTTP status", "means"), rows),
            "## Of the task tree",
            "`casework.tasktree` stands alone and has its own tree, below `TreeError`. They mean misuse of the tree "
            "by the code that runs in it, or carry the error of a node.",
            table(("class", "means"), [(f"`{cls.__name__}`", _doc(cls)) for cls in tree]),
        ]
    )


def _is_error(thing: object, base: type[Exception]) -> bool:
    return isinstance(thing, type) and issubclass(thing, base)


def _doc(cls: type) -> str:
    return cell(cls.__doc__ or "")


def _tree(doc: str | None) -> str:
    lines = [line[4:] for line in (doc or "").splitlines() if line.startswith("    ")]
    return "\n".join(lines)


def requirements_open() -> str:
    """The requirements that no test names."""
    from tests.architecture.requirements import open_ids  # noqa: PLC0415

    ids = open_ids()
    return "\n\n".join(
        [
            GENERATED,
            "# Requirements that no test names yet",
            f"{len(ids)} of the [requirements](requirements.md). A test shows one by naming its id in its docstring.",
            "\n".join(f"- {each}" for each in ids),
        ]
    )


def write(wanted: Mapping[Path, str]) -> list[Path]:
    """Write what differs; returns the files that were written."""
    stale = outdated(wanted)
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    return stale


def outdated(wanted: Mapping[Path, str]) -> list[Path]:
    """The files whose text is not the wanted one."""
    return [path for path, text in wanted.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]


def _told(paths: Iterable[Path]) -> Sequence[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


if __name__ == "__main__":
    for name in _told(write(pages())):
        click.echo(f"wrote {name}")
