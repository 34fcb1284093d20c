"""The sample of repeat safety on workers that call a tool again whose result is committed: a drill must find it.

Nothing else would tell: the office charges a key once, the ledger keeps the first result, and no point is passed. The
rehearsal kills at the charge alone, so that few kills reach the moment between the commit and its report.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from casework.agents.invoke import invoke
from casework.app import App
from casework.durable.activities.tool import ToolActivity
from casework.examples.repeat_safety import tools
from casework.examples.repeat_safety.application import MANIFEST
from casework.examples.repeat_safety.rehearsal import REHEARSAL
from casework.examples.repeat_safety.script import clerk

_claim = ToolActivity._claim


async def _claim_and_call_again(self: ToolActivity, call: Any, tool: Any) -> Any:
    claimed, context, arguments = await _claim(self, call, tool)
    if claimed.state == "committed":
        await invoke(tool, context, arguments)
    return claimed, context, arguments


ToolActivity._claim = _claim_and_call_again  # type: ignore[method-assign]  # workers load this module before they work

app = App(
    tools=tools.TOOLS,
    manifests=(MANIFEST,),
    scripts={"clerk": clerk},
    rehearsal=replace(REHEARSAL, stages=(("charge_fee",),)),
)
