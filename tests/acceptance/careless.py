"""The loan application with a bureau that does not honour keys: a drill must find that out.

Run as a program it is that bureau; as a module it is the application.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from casework.app import App
from casework.examples.loan_underwriting.application import MANIFEST, POLICY
from casework.examples.loan_underwriting.bureau import Bureau, main
from casework.examples.loan_underwriting.rehearsal import REHEARSAL
from casework.examples.loan_underwriting.script import underwriter
from casework.examples.loan_underwriting.tools import TOOLS


class CarelessBureau(Bureau):
    """Every call is an inquiry."""

    def _take_effect(self, key: str) -> None:
        self._effects[key] += 1


COMMAND = (sys.executable, "-m", "tests.acceptance.careless")

app = App(
    tools=TOOLS,
    manifests=(MANIFEST,),
    scripts={"underwriter": underwriter},
    policy=POLICY,
    rehearsal=replace(REHEARSAL, destination=replace(REHEARSAL.destination, command=COMMAND)),
)

if __name__ == "__main__":
    main(CarelessBureau)
