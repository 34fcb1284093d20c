"""What a fork begins with: where its source stood when it entered the visit in which the fork begins."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from casework.durable.contracts import Carried
from casework.durable.workflows.inbox import Inbox
from casework.durable.workflows.journal import Journal
from casework.graph.state import EngineState
from casework.projection import ContextEntry, to_plain
from casework.values import instant


def beginning(state: EngineState, position: int, outputs: Iterable[ContextEntry], since: datetime) -> Carried:
    """The run is about to enter the visit that `state` stands for; its transcript has `position` messages.

    `outputs` are the latest of each key, whose values are in the state's context.
    """
    journal: dict[str, Any] = {
        **Journal().carried({}),
        "position": position,
        "turn": state.turn,
        "loops": state.loop_count,
        "recommendation": state.answer,
        "outputs": [{name: part for name, part in to_plain(entry).items() if name != "value"} for entry in outputs],
    }
    return Carried(
        part=1,
        since=instant(since),
        state=state.to_plain(),
        counters={"": _ordinals(state)},
        journal=journal,
        inbox=Inbox(Journal()).carried(),
    )


def _ordinals(state: EngineState) -> dict[str, int]:
    """The last ordinals that were given: of the visit that is due, the one before it."""
    before = {**state.visits, state.current_node or "": state.visits.get(state.current_node or "", 1) - 1}
    return {name: count for name, count in sorted(before.items()) if count > 0}
