"""The tools of an application, by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from casework.agents.model import ToolSchema
from casework.agents.tools import Tool
from casework.errors import NotFoundError, ToldError, ToolDeclarationError


class Toolbox:
    """Tools by name, in the order given.

    Raises:
        ToolDeclarationError: two tools have one name, or a thing is no tool.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for each in tools:
            if not isinstance(each, Tool):
                raise ToolDeclarationError(
                    f"{each!r} is no tool. Decorate the function with @tool(...).", field="tools"
                )
            if each.name in self._tools:
                raise ToolDeclarationError(
                    f"Two tools are named '{each.name}'. Rename one, or pass name='...'.", field="tools"
                )
            self._tools[each.name] = each

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(self._tools)

    @property
    def quick(self) -> tuple[str, ...]:
        """The names of those that may be called again without asking anybody first, in order."""
        return tuple(each.name for each in self if each.quick)

    def find(self, name: str) -> Tool | None:
        """The tool, or None."""
        return self._tools.get(name)

    def get(self, name: str) -> Tool:
        """The tool that a manifest or a step names.

        Raises:
            NotFoundError: it is not registered; suggests a near name.
        """
        found = self._tools.get(name)
        if found is None:
            raise NotFoundError(self._unknown(name, "Register it in the App's tools, or correct the name."))
        return found

    def asked(self, name: str) -> Tool:
        """The tool that a model asks for.

        Raises:
            ToldError: the model may not use such a tool; suggests a near name.
        """
        found = self._tools.get(name)
        if found is None:
            raise ToldError(self._unknown(name, "Use one of these tools, or answer without one."))
        return found

    def only(self, names: Iterable[str]) -> Toolbox:
        """A toolbox of the named tools.

        Raises:
            NotFoundError: one of them is not registered.
        """
        return Toolbox(self.get(name) for name in dict.fromkeys(names))

    def schemas(self) -> tuple[ToolSchema, ...]:
        """The tools as a model sees them."""
        return tuple(each.schema for each in self)

    def suggest(self, name: str) -> str | None:
        """The registered name nearest to `name`, if one is near."""
        near = difflib.get_close_matches(name, self._tools, n=1)
        return near[0] if near else None

    def _unknown(self, name: str, remedy: str) -> str:
        near = self.suggest(name)
        hint = f" Did you mean '{near}'?" if near else ""
        known = ", ".join(self._tools) or "none"
        return f"There is no tool '{name[:80]}'.{hint} Tools: {known}. {remedy}"
