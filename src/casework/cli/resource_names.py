"""The names of kinds as people type them: `AiWorkflow`, `aiworkflows`, `workflow`, `agents`."""

from __future__ import annotations

import click


def kind_of(text: str) -> str:
    """The kind that `text` means, in any case, plural or not, without its first word where that is clear.

    Raises:
        BadParameter: there is none; suggests a near one.
    """
    from casework.graph.kinds import ALL_KINDS
    from casework.graph.words import nearest

    word = text.strip().casefold().removesuffix("s")
    for kind in ALL_KINDS:
        whole = kind.casefold()
        if word in (whole, whole.removeprefix("ai"), whole.removeprefix("llm"), whole.removeprefix("mcp"), _last(kind)):
            return kind
    raise click.BadParameter(
        f"{text!r:.60} is no kind; there are {', '.join(ALL_KINDS)}.{nearest(text, ALL_KINDS)}", param_hint="KIND"
    )


def _last(kind: str) -> str:
    return kind.casefold().removeprefix("workflow")
