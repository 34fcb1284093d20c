"""Underwriting of personal loans: an agent gathers evidence, applies policy and recommends; a person decides.

Start it with `casework dev --app casework.examples.loan_underwriting:app`. Read `manifests/loan-underwriting.yaml`
first (the graph, the agent), then `tools.py` (what the agent may do), `evidence.py` (what facts there are) and
`script.py` (the model that answers when no real one is set). `settings.py` lists the variables that choose another
source of evidence.
"""

from casework.examples.loan_underwriting.application import app

__all__ = ["app"]
