"""The page of metrics names what /metrics gives: every metric, its type and labels, and no alert about another."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, cast

from prometheus_client.core import Metric
from ruamel.yaml import YAML

from casework.api import create_app
from casework.api.scraping import Reading, _about
from casework.api.store_figures import families
from casework.app import App
from casework.settings import Settings
from casework.store.totals import Ended, InFlight, Live, Operation, Totals, Waiting
from tests.docs.test_tables import DOCS

PAGE = DOCS / "operations/metrics.md"
NOBODY = cast("Any", None)
USED = ("t", "w", "COMPLETED", 1, 1, 1, 0, Decimal(1), 1, 1, 1, 1, Decimal(1))
ONE_OF_EACH = Totals(
    [Ended(*USED, "approved", Decimal(1))],
    [Live(*USED, 0, Decimal(1))],
    [Waiting("t", "w", 1, Decimal(1))],
    [Operation("t", "tool", "x", 1, 1, 1, 1, 1)],
    [InFlight("t", "tool", "x", 1, 1)],
)


def given() -> list[Metric]:
    app = create_app(Settings(), App(), NOBODY, NOBODY)
    app.state.scraper.http.count("GET", "/v1/runs", 200, 0.1)
    own = [*_about(Reading(0, ONE_OF_EACH, 0)), *families(ONE_OF_EACH), *app.state.scraper.http.registry.collect()]
    return [family for family in own if not family.name.startswith("process_")]


def shown(family: Metric) -> tuple[str, str, str]:
    """As a row of the page: name, type, labels."""
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = dict.fromkeys(label for sample in family.samples for label in sample.labels if label != "le")
    return f"`{name}`", family.type, ", ".join(labels)


def test_page_names_every_metric_with_type_and_labels() -> None:
    rows = re.findall(
        r"^\| (`casework_\w+`) \| (\w+) \| ([\w, ]*?) ?\|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(rows) == sorted(shown(family) for family in given())


def test_alerts_are_yaml_and_of_metrics_that_exist() -> None:
    block = re.search(r"```text\n(groups:.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block
    rules = YAML(typ="safe").load(block[1])["groups"][0]["rules"]
    assert len(rules) == 3
    names = {shown(family)[0].strip("`") for family in given()}
    for rule in rules:
        asked = set(re.findall(r"\bcasework_\w+", rule["expr"]))
        assert asked
        assert asked <= names
