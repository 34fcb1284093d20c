"""What this application gives to `casework demo` and `casework drill`."""

from __future__ import annotations

import sys
from pathlib import Path

from casework.examples.loan_underwriting.fixtures import APPROVABLE, BORDERLINE, DECLINABLE, NO_INCOME
from casework.examples.loan_underwriting.settings import BUREAU_URL, INCOME_URL
from casework.rehearsal import Destination, Rehearsal

FOLDER = Path(__file__).parent

REHEARSAL = Rehearsal(
    workflow="loan-underwriting",
    inputs=(
        ("borderline", {"applicant_id": BORDERLINE, "amount": 15000, "purpose": "debt_consolidation"}),
        ("approvable", {"applicant_id": APPROVABLE, "amount": 8000, "purpose": "home_improvement"}),
        ("declinable", {"applicant_id": DECLINABLE, "amount": 22000, "purpose": "small_business"}),
        ("no income", {"applicant_id": NO_INCOME, "amount": 4000, "purpose": "medical"}),
    ),
    stages=(("credit_check", "income_verification"), ("debt_to_income_calc",), ("policy_lookup",)),
    policy=FOLDER / "policy.csv",
    changed_policy=FOLDER / "policy_changed.csv",
    destination=Destination(
        command=(sys.executable, "-m", "casework.examples.loan_underwriting.bureau"),
        variables=(BUREAU_URL, INCOME_URL),
        keyed=("credit_check",),
        reads=("income_verification",),
        evidence="--evidence",
    ),
    tag_field="applicant_id",
    question="What makes the ratio acceptable? The applicant says that the car loan ends in March.",
)
