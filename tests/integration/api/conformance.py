"""Answers held against the published OpenAPI document: path, status, media type and shape must be declared there."""

from __future__ import annotations

import re
from typing import Any

from jsonschema import Draft202012Validator

from casework.api.inputs import exact


class Conformance:
    """One OpenAPI document, as a judge of answers."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
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
        schema = {**content[media_type]["schema"], "components": self._document["components"]}
        Draft202012Validator(exact(schema)).validate(body)
