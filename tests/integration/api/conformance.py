"""Answers held against the published OpenAPI document: path, status, media type and shape must be declared there."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, cast

from jsonschema import Draft202012Validator

from casework.api import create_app
from casework.api.inputs import exact
from casework.app import App
from casework.settings import Settings


class Conformance:
    """One OpenAPI document, as a judge of answers."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._components = exact(document["components"])
        self._paths = {re.compile(re.sub(r"\{\w+\}", "[^/]+", path)): path for path in document["paths"]}

    def check(self, method: str, path: str, status: int, media_type: str, body: Any) -> None:
        """Fail where the document does not announce such an answer."""
        known = next((name for pattern, name in self._paths.items() if pattern.fullmatch(path)), None)
        operation = self._document["paths"].get(known, {}).get(method.lower())
        if operation is None:
            assert status in {403, 404, 405}, f"{method} {path} is not in the document"
            return
        assert str(status) in operation["responses"], f"{method} {path} answers {status}, which is not announced"
        content = operation["responses"][str(status)]["content"]
        assert media_type in content, f"{method} {path} {status} is {media_type}, announced is {list(content)}"
        schema = {**exact(content[media_type]["schema"]), "components": self._components}
        Draft202012Validator(schema).validate(body)


@cache
def published() -> Conformance:
    """The judge by the document of this release. It is made once, in a sixth of a second: no API has another one."""
    nowhere = cast("Any", None)  # no database is asked, and no engine
    return Conformance(create_app(Settings(), App(), nowhere, nowhere).openapi())
