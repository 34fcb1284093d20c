"""Rules of a review: which decision counts, and what a decision must bring.

Here belong judgements on values alone. Here do not belong tables, signals, HTTP, and the question of who may review:
the run judges on its own state, whatever the tables say.
"""

from casework.review.judging import Accepted, Ignored, OpenReview, Verdict, judge
from casework.review.wording import MAX_REASON, NEEDS_REASON, DecisionLike, check_decision, command_name

__all__ = [
    "MAX_REASON",
    "NEEDS_REASON",
    "Accepted",
    "DecisionLike",
    "Ignored",
    "OpenReview",
    "Verdict",
    "check_decision",
    "command_name",
    "judge",
]
