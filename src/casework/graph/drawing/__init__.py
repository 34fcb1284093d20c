"""Pictures of workflows: Mermaid text and SVG, from the manifest alone.

Here belong what of a workflow is shown, where it stands in the picture, and the two ways to write it down. Here do not
belong files, the command line, and the state of a run: whoever has one passes the current node and the visits.
"""

from __future__ import annotations

from casework.graph.drawing.mermaid import mermaid
from casework.graph.drawing.svg import svg

__all__ = ["mermaid", "svg"]
