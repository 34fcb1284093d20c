"""Which free trees a worker has, told to its workflow code: name and version, module and attribute."""

from __future__ import annotations

from collections.abc import Iterable

from temporalio.worker import Interceptor, WorkflowInboundInterceptor, WorkflowInterceptorClassInput

from casework.durable.workflows.tree_code import PLACES, Places
from casework.trees.definition import FreeTree


class TreePlaces(Interceptor):
    """Intercepts nothing; it is the SDK's way for a worker to hand a function to the workflow code it runs.

    Raises:
        TreeDeclarationError: a tree has no place where it could be found again.
    """

    def __init__(self, trees: Iterable[FreeTree]) -> None:
        self._places: Places = {(tree.name, tree.version): tree.place() for tree in trees}

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002  # the SDK's name
    ) -> type[WorkflowInboundInterceptor] | None:
        """Hand it over."""
        input.unsafe_extern_functions[PLACES] = lambda: self._places
        return None
