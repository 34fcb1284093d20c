"""Schemas of manifests, made from the pydantic models: JSON Schema for editors, definitions for Kubernetes.

Here belongs the way from a model to a schema of either form. Here do not belong the models, what they mean, and files.
"""

from __future__ import annotations

from casework.graph.schemas.definitions import definition
from casework.graph.schemas.editors import any_kind, json_schema

__all__ = ["any_kind", "definition", "json_schema"]
