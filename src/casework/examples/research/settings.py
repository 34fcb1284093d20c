"""Settings of this example, read from the environment when a tool needs them.

RESEARCH_ROOT
    Folder that runs may look in. A run's `folder` is a path below it; without one the run looks in all of it. Default:
    the small corpus that ships with the example.
RESEARCH_OUTPUT
    Folder that reports are written to; it is made when the first is. Default: `reports` in the worker's working folder.

They have a prefix of their own: `CASEWORK_` belongs to the platform, which refuses what it does not know.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = "RESEARCH_ROOT"
OUTPUT = "RESEARCH_OUTPUT"
CORPUS = Path(__file__).parent / "corpus"
"""The corpus that ships with the example."""


@dataclass(frozen=True)
class ResearchSettings:
    """Where runs look, and where their reports go."""

    root: Path = CORPUS
    output: Path = Path("reports")

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> ResearchSettings:
        """Read them from the environment; a blank value counts as none."""
        source = os.environ if environ is None else environ
        root, output = (source.get(name, "").strip() for name in (ROOT, OUTPUT))
        return cls(Path(root) if root else cls.root, Path(output) if output else cls.output)
