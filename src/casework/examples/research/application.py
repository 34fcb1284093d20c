"""The application object, put together from its parts."""

from __future__ import annotations

from pathlib import Path

from casework.app import App
from casework.examples.research.reading import check_quotations, read_document, set_source_aside, sort_notes
from casework.examples.research.report import compose_report, number_evidence, save_report
from casework.examples.research.scripts import reader, weigher, writer
from casework.examples.research.search import join_hits, search_headings, search_tables, search_texts

MANIFESTS = Path(__file__).parent / "manifests"

app = App(
    tools=[
        search_texts,
        search_headings,
        search_tables,
        join_hits,
        read_document,
        sort_notes,
        check_quotations,
        set_source_aside,
        number_evidence,
        compose_report,
        save_report,
    ],
    manifests=[MANIFESTS / "research.yaml", MANIFESTS / "source-review.yaml"],
    scripts={"reader": reader, "weigher": weigher, "writer": writer},
)
