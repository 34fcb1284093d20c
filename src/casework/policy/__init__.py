"""Governed thresholds and the pure function that holds evidence against them.

Here: `PolicyLimits` (one row per purpose), `PolicyReading` (which row a run used and where it came from), `evaluate`,
the names of purposes, the form of policy files, and the port `PolicySource`. Not here: where rows are kept and which
version an open run adopts (`store`, `durable`), and the tool that asks (`examples`). No I/O, no clock.
"""

from casework.policy.evaluate import PolicyResult, RuleResult, evaluate
from casework.policy.files import ParsedPolicy, RefusedRow, form_of, parse_policy
from casework.policy.limits import PolicyLimits, PolicyReading, PolicySource
from casework.policy.purposes import normalise_purpose

__all__ = [
    "ParsedPolicy",
    "PolicyLimits",
    "PolicyReading",
    "PolicyResult",
    "PolicySource",
    "RefusedRow",
    "RuleResult",
    "evaluate",
    "form_of",
    "normalise_purpose",
    "parse_policy",
]
