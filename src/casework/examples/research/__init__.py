"""Research in files: a question is answered from a folder, each quotation checked, and a person publishes the report.

Start it with `casework dev --app casework.examples.research:app`. Read `manifests/research.yaml` first (the graph),
then `manifests/source-review.yaml` (the run that each source gets), `search.py`, `reading.py` and `report.py` (the
tools), and `scripts.py` (the models that answer when no real one is set). `folder.py` keeps every read below one
folder; `settings.py` lists the variables that say which, and where reports go.
"""

from casework.examples.research.application import app

__all__ = ["app"]
