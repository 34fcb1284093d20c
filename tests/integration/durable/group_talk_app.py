"""The group talk as it ships, with scripts that write down each time they are asked, and may hang at one."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from casework.agents import ModelAnswer, ModelRequest
from casework.app import App
from casework.examples.group_talk.application import group_talk, scripted_agent
from casework.examples.group_talk.committee import CAST, Member

ASKED = "TEST_TALK_ASKED"
"""Names the file that gets a line for each ask: the agent, and how much it had been told before."""
HANGS_AT = "TEST_TALK_HANGS_AT"
"""The number of the ask, of all that this process gets, that is not answered."""

_lock = threading.Lock()
_asks = 0


def counted(member: Member) -> Any:
    script = scripted_agent(member.script)

    def model(request: ModelRequest) -> ModelAnswer:
        global _asks  # noqa: PLW0603 - of this process
        with _lock:
            _asks += 1
            number = _asks
            with Path(os.environ[ASKED]).open("a") as file:
                file.write(f"{member.agent} {len(request.messages)}\n")
        if str(number) == os.environ.get(HANGS_AT):
            threading.Event().wait()
        answer: ModelAnswer = script(request)
        return answer

    return model


app = App(trees=[group_talk], scripts={member.agent: counted(member) for member in CAST})
