"""From files to manifests: every problem of a file at once, each with line, path, value and remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from casework.errors import ManifestError
from casework.graph.kinds import ALL_KINDS
from casework.graph.manifests import API_VERSION, KINDS, BranchType, Manifest, NodeType, Resource
from casework.graph.origins import Origin, Path, where
from casework.graph.sources import Document, read
from casework.graph.words import nearest, one_line, shown

_SHOWN = 60
_VERSION = f"Add `apiVersion: {API_VERSION}`."
_SHOWN_PROBLEMS = 50
_WORDS = {
    "string_type": "is no text. Put it in quotes, or write a text.",
    "tuple_type": "is no list. Write `- item` lines below it.",
    "int_type": "is no whole number. Write digits, without quotes.",
    "bool_type": "is neither true nor false. Write one of the two.",
    "decimal_type": "is no number. Write digits, as in 0.5.",
    "greater_than_equal": "is less than {ge}. Write a larger number.",
    "less_than_equal": "is more than {le}. Write a smaller number.",
}
_SIZES = {
    "too_short": "it has {size} {unit}; at least {min_length}. Add what is missing.",
    "too_long": "it has {size} {unit}; at most {max_length}. Shorten it.",
    "string_too_short": "it has {size} {unit}; at least {min_length}. Write a text.",
    "string_too_long": "it has {size} {unit}; at most {max_length}. Shorten it.",
}
_SECRET = ("key", "secret", "token", "password", "credential")


def load(text: str | bytes, name: str = "manifest") -> list[Manifest]:
    """The manifests of a file: YAML, of one or more documents, or JSON. `name` is the file's, for messages.

    Raises:
        ManifestError: the text cannot be read, or manifests in it are refused; all of them are listed.
    """
    # What an application is made of has these kinds, so `_manifest` gives no other.
    return cast("list[Manifest]", _loaded(text, name, KINDS))


def load_resources(text: str | bytes, name: str = "manifest") -> list[Resource]:
    """The resources of a file, of every kind that can be applied. A `status` is the platform's word and is left out.

    Raises:
        ManifestError: as `load`.
    """
    return _loaded(text, name, ALL_KINDS)


def _loaded(text: str | bytes, name: str, kinds: Mapping[str, type[Resource]]) -> list[Resource]:
    documents = read(text, name)
    if not documents:
        raise ManifestError(f"{name}: it holds no manifest. Write `apiVersion: {API_VERSION}`, kind, metadata, spec.")
    made: list[Resource] = []
    problems: list[str] = []
    for document in documents:
        found = _manifest(document, name, kinds)
        if isinstance(found, list):
            problems.extend(found)
        else:
            made.append(found)
    if problems:
        raise ManifestError(_listed([one_line(problem) for problem in problems]))
    return made


def _listed(problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    more = [f"and {len(problems) - _SHOWN_PROBLEMS} more"] if len(problems) > _SHOWN_PROBLEMS else []
    return "\n".join([f"{len(problems)} problems:", *problems[:_SHOWN_PROBLEMS], *more])


def _manifest(document: Document, name: str, kinds: Mapping[str, type[Resource]]) -> Resource | list[str]:
    value = document.value
    if not isinstance(value, dict):
        what = f"a manifest is a mapping of apiVersion, kind, metadata, spec, not {shown(value)}."
        return [f"{name}:{document.line(())}: {what}"]
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        return [f"{name}:{document.line(('kind',))}: kind: {_kind_problem(kind, kinds)}"]
    if kinds is ALL_KINDS:
        value = {key: item for key, item in value.items() if key != "status"}
    version = [] if "apiVersion" in value else [f"{name}:{document.line(())}: apiVersion: it is missing. {_VERSION}"]
    try:
        made = kinds[kind].model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        return version + [_problem(detail, document, name, kinds[kind]) for detail in _telling(error)]
    made.__dict__["origin"] = Origin(name, document.lines)  # as a cached property keeps what it found
    return version or made


def _telling(error: ValidationError) -> list[ErrorDetails]:
    """The errors without those that only follow from others: a list is too short because its items are wrong."""
    found = error.errors(include_url=False)
    places = [detail["loc"] for detail in found]

    def inside(loc: Path) -> bool:
        return any(len(place) > len(loc) and place[: len(loc)] == loc for place in places)

    return [detail for detail in found if not (detail["type"] == "too_short" and inside(detail["loc"]))]


def _kind_problem(kind: object, kinds: Mapping[str, type[Resource]]) -> str:
    names = ", ".join(kinds)
    if kind is None:
        return f"it is missing. Add one of {names}."
    if isinstance(kind, str) and kind in ALL_KINDS:
        return f"{kind} is no part of an application; it is applied with `casework apply`. There are {names}."
    return f"{shown(kind)} is not known; there are {names}.{nearest(kind, kinds)}"


def _problem(detail: ErrorDetails, document: Document, name: str, model: type[BaseModel]) -> str:
    # The library calls a key that is wrong itself `[key]`; it stands in the path already.
    path: Path = detail["loc"][:-1] if detail["loc"][-1:] == ("[key]",) else detail["loc"]
    place = where(path)
    return f"{name}:{document.line(path)}: {place + ': ' if place else ''}{_what(detail, path, model)}"


def _what(detail: ErrorDetails, path: Path, model: type[BaseModel]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_field(path, model)
    if kind == "literal_error":
        if path[-1] == "type" and "nodes" in path:
            return _unknown_type(detail, path)
        known = _literals(str(context.get("expected", "")))
        return f"{_shown(detail, path)} is not known; there are {', '.join(known)}.{nearest(detail['input'], known)}"
    if kind in ("model_type", "dict_type", "model_attributes_type"):
        return f"{_shown(detail, path)} is no mapping. Write `name: value` lines below it."
    return _value_problem(detail, path)


def _value_problem(detail: ErrorDetails, path: Path) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "string_pattern_mismatch":
        return f"{_shown(detail, path)} {_pattern_words(str(context.get('pattern', '')))}."
    message = detail["msg"].removeprefix("Value error, ")
    if kind in _WORDS:
        return f"{_shown(detail, path)} {_WORDS[kind].format(**context)}"
    if kind in _SIZES:
        unit = "items" if kind.startswith("too") else "characters"
        return _SIZES[kind].format(size=len(detail["input"]), unit=unit, **context)
    ready = {"missing": "it is missing. Add it.", "value_error": f"{message}{'.' if message[-1:] != '?' else ''}"}
    return ready.get(kind, f"{_shown(detail, path)}: {message[:1].lower()}{message[1:]}.")


def _unknown_type(detail: ErrorDetails, path: Path) -> str:
    shown, given = _shown(detail, path), detail["input"]
    if "branches" in path and given in get_args(NodeType):
        return f"a branch cannot be {shown}; it is one of {', '.join(get_args(BranchType))}. Make it a node."
    known = get_args(BranchType if "branches" in path else NodeType)
    return f"{shown} is not known; there are {', '.join(known)}.{nearest(given, known)}"


def _unknown_field(path: Path, model: type[BaseModel]) -> str:
    field = str(path[-1])
    known = _fields_at(path[:-1], model)
    meant = nearest(field, known)
    if not meant and any(word in field.casefold() for word in _SECRET):
        return (
            f"a key may not stand in a manifest. Remove {field!r} and name where it is read from: "
            "keyRef: {env: NAME} or keyRef: {file: PATH}."
        )
    return f"there is no field {field!r:.{_SHOWN}}; there are {', '.join(known)}.{meant}"


def _fields_at(path: Path, model: type[BaseModel]) -> list[str]:
    """The fields of the model that `path` leads to."""
    for part in path:
        # An index, and a key of a mapping of parts, lead to no field of their own.
        field = next((each for name, each in model.model_fields.items() if (each.alias or name) == part), None)
        model = next(_models(field.annotation), model) if field is not None else model
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _literals(expected: str) -> list[str]:
    return [word.strip(" '") for word in expected.replace(" or ", ",").split(",") if word.strip(" '")]


def _pattern_words(pattern: str) -> str:
    if "a-z0-9-" in pattern:
        return "is no name: use lower-case letters, digits and inner dashes"
    if "_-" in pattern:
        return "is no id: use letters, digits, `_` and `-`, a letter first"
    return "is no key: use letters, digits and `_`, a letter first"


def _shown(detail: ErrorDetails, path: Path) -> str:
    """The wrong value, shortened; never what stands where a key might."""
    named = [str(part).casefold() for part in path if part != "maxTokens"]
    if any(word in part for part in named for word in ("keyref", *_SECRET[1:])):
        return "this value"
    return shown(detail["input"], _SHOWN)
