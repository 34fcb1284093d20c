"""The loan case with a credit committee: an application that is referred is talked about before a person decides.

Start it with `casework dev --app casework.examples.credit_committee:app`. The graph is in
`manifests/loan-underwriting-with-committee.yaml`. Tools, evidence and policy are those of `loan_underwriting`, the talk
and its roles those of `group_talk`; what puts the two together belongs here, and nothing else.
"""

from casework.examples.credit_committee.application import app

__all__ = ["app"]
