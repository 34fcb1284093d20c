"""From a request's manifests to resources that may be applied: their fields, their sender's role, their keys.

A worker reads the keys of providers from its own environment, so who applies one names what leaves that environment.
An applied manifest may name variables that end in `_API_KEY`, and whatever the application's own manifests name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from casework.api.access import Caller, Role
from casework.api.problems import fields_of
from casework.app import App
from casework.errors import AccessError, FieldsError
from casework.graph.kinds import ALL_KINDS, McpServer
from casework.graph.manifests import KeyRef, LlmProvider, Resource
from casework.graph.origins import Path, sent, where
from casework.graph.sources import unholdable
from casework.graph.words import nearest

KEY_ENDING = "_API_KEY"


def parsed(manifests: Sequence[Mapping[str, Any]], caller: Caller, app: App) -> list[Resource]:
    """The resources of a request.

    Raises:
        FieldsError: a manifest does not hold; every field is named, as `manifests[0].spec.provider`.
        AccessError: a definition came from who is no admin.
    """
    found: list[Resource] = []
    errors: list[dict[str, str]] = []
    for index, manifest in enumerate(manifests):
        made = _resource(manifest, f"manifests[{index}]")
        if isinstance(made, list):
            errors += made
        else:
            made.__dict__["origin"] = sent(index)  # as a cached property keeps what it found
            found.append(made)
            errors += _key_errors(made, f"manifests[{index}]", app)
    errors += _twice(found)
    if errors:
        raise FieldsError("A manifest does not hold; `errors` names each field.", errors)
    for resource in found:
        check_role(kind_of(resource), caller)
    return found


def check_role(kind: str, caller: Caller) -> None:
    """That the caller may apply or delete a resource of that kind.

    Raises:
        AccessError: a definition needs an admin, a session an operator.
    """
    need = Role.OPERATOR if kind == "WorkflowSession" else Role.ADMIN
    if not caller.has(need):
        raise AccessError(
            f"To apply or delete a resource of kind {kind} needs the role {need}; {caller.name!r} has "
            f"{', '.join(sorted(caller.roles)) or 'none'}. Use a token with that role (casework token create)."
        )


def kind_of(resource: Resource) -> str:
    """The kind of a resource."""
    return type(resource).__name__


def _resource(manifest: Mapping[str, Any], place: str) -> Resource | list[dict[str, str]]:
    kind = manifest.get("kind")
    if not isinstance(kind, str) or kind not in ALL_KINDS:
        told = f"{kind!r:.60} is no kind; there are {', '.join(ALL_KINDS)}.{nearest(kind, ALL_KINDS)}"
        return [{"field": f"{place}.kind", "message": told.rstrip(".")}]
    if "apiVersion" not in manifest:
        return [{"field": f"{place}.apiVersion", "message": "is required"}]
    value = {key: item for key, item in manifest.items() if key != "status"}
    if odd := [{"field": f"{place}.{where(path)}", "message": f"holds {held}"} for path, held in _odd(value, ())]:
        return odd
    try:
        return ALL_KINDS[kind].model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        return [{**each, "field": f"{place}.{each['field']}"} for each in fields_of(error.errors(include_url=False))]


def _odd(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """The texts that could not be kept as they are; a key is named by the object that it stands in."""
    if isinstance(value, str) and (held := unholdable(value)):
        yield path, held
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from _odd(key, path)
        yield from _odd(item, (*path, key))


def _twice(found: Sequence[Resource]) -> Iterator[dict[str, str]]:
    seen: set[tuple[str, str]] = set()
    for resource in found:
        key = kind_of(resource), resource.name
        if key in seen:
            yield {"field": "manifests", "message": f"holds {key[0]} {key[1]!r} twice. Send it once"}
        seen.add(key)


def _key_errors(resource: Resource, place: str, app: App) -> Iterator[dict[str, str]]:
    for path, ref in _references(resource):
        if ref in _own(app) or (ref.env is not None and ref.env.endswith(KEY_ENDING)):
            continue
        told = f"names what no applied manifest may name: a variable that ends in {KEY_ENDING}, or one that the "
        yield {"field": f"{place}.spec.{path}", "message": f"{told}application's own manifests name"}


def _references(resource: Resource) -> Iterator[tuple[str, KeyRef]]:
    if isinstance(resource, LlmProvider | McpServer) and resource.spec.key_ref is not None:
        yield "keyRef", resource.spec.key_ref
    if isinstance(resource, McpServer):
        yield from ((f"env.{name}", ref) for name, ref in (resource.spec.env or {}).items())


def _own(app: App) -> list[KeyRef]:
    """The keys that the application's own providers name."""
    providers = [one for pinned in app.bundles().values() for one in pinned.providers.values()]
    return [one.spec.key_ref for one in providers if one.spec.key_ref is not None]
