"""What this application gives to `casework drill`: cases, the office, and the table of its transactional tool."""

from __future__ import annotations

import sys
from pathlib import Path

from casework.examples.repeat_safety.settings import OFFICE_URL
from casework.rehearsal import Destination, OwnTables, Rehearsal

REHEARSAL = Rehearsal(
    workflow="change-of-address",
    inputs=(
        ("moved", {"customer_id": "C-1001", "address": "12 Elm Street, Springfield"}),
        ("moved abroad", {"customer_id": "C-1002", "address": "Gartenweg 3, 4051 Basel, Switzerland"}),
    ),
    stages=(("set_address",), ("charge_fee",), ("note_change",), ("send_letter",)),
    destination=Destination(
        command=(sys.executable, "-m", "casework.examples.repeat_safety.office"),
        variables=(OFFICE_URL,),
        keyed=("charge_fee",),
        referenced=("send_letter",),
        sets=("set_address",),
    ),
    tables=OwnTables(
        prepare=Path(__file__).parent / "tables.sql",
        effects={"note_change": "select key, count(*) from change_of_address.journal group by key"},
    ),
    tag_field="customer_id",
    outcome="closed",
    question="Was the letter sent?",
)
