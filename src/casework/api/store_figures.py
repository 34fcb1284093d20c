"""The store's figures as Prometheus metrics. Labels are tenants, workflows, states, outcomes, tools: what operators
and manifests name. No run, user or reason is a label, so the number of series does not grow with the work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from casework.store.totals import Ended, InFlight, Live, Operation, Totals, Used, Waiting

OPEN = ("PENDING", "RUNNING", "AWAITING_REVIEW")
OF_WORKFLOW = ("tenant", "workflow")
OF_OPERATION = ("tenant", "kind", "name")
MS = 1000


def families(totals: Totals) -> Iterator[Metric]:
    """Every metric of the store, in the order of the docs."""
    used = (*totals.ended, *totals.live)
    yield from _runs(totals.live, {(each.tenant, each.workflow_name) for each in used})
    yield _by_workflow("casework_runs_accepted", "Runs accepted.", used, lambda each: each.runs)
    yield from _ended(totals.ended)
    yield from _reviews(used, totals.waiting)
    yield from _steps(totals.operations, totals.in_flight)
    yield from _spent(used)


def _runs(live: Iterable[Live], known: Iterable[tuple[str, str]]) -> Iterator[Metric]:
    """Open runs; a workflow that has none has zeros, so that a graph has no holes."""
    runs = GaugeMetricFamily("casework_runs", "Open runs by state.", labels=(*OF_WORKFLOW, "state"))
    oldest = GaugeMetricFamily(
        "casework_run_oldest_seconds",
        "Since the oldest run in this state was accepted; 0 where none is.",
        labels=(*OF_WORKFLOW, "state"),
    )
    incidents = GaugeMetricFamily("casework_run_incidents", "Open runs with an incident.", labels=OF_WORKFLOW)
    found = {(each.tenant, each.workflow_name, each.status): each for each in live}
    for tenant, workflow in sorted(known):
        states = [(state, found.get((tenant, workflow, state))) for state in OPEN]
        for state, each in states:
            runs.add_metric((tenant, workflow, state), each.runs if each else 0)
            oldest.add_metric((tenant, workflow, state), _positive(each.oldest_seconds) if each else 0)
        incidents.add_metric((tenant, workflow), sum(each.incidents for _, each in states if each))
    yield from (runs, oldest, incidents)


def _ended(ended: Iterable[Ended]) -> Iterator[Metric]:
    count = CounterMetricFamily(
        "casework_runs_ended", "Runs that ended, by state and outcome.", labels=(*OF_WORKFLOW, "state", "outcome")
    )
    lasted = SummaryMetricFamily(
        "casework_run_duration_seconds",
        "From acceptance to the end, waits for people included.",
        labels=(*OF_WORKFLOW, "state"),
    )
    sums: dict[tuple[str, ...], list[Decimal]] = defaultdict(lambda: [Decimal(0), Decimal(0)])
    for each in ended:
        count.add_metric((each.tenant, each.workflow_name, each.status, each.outcome), each.runs)
        found = sums[each.tenant, each.workflow_name, each.status]
        found[0] += each.runs
        found[1] += each.run_seconds
    for labels, (runs, seconds) in sorted(sums.items()):
        lasted.add_metric(labels, int(runs), float(seconds))
    yield from (count, lasted)


def _reviews(used: Iterable[Used], waiting: Iterable[Waiting]) -> Iterator[Metric]:
    used = tuple(used)
    known = {(each.tenant, each.workflow_name) for each in used}
    pending = {(each.tenant, each.workflow_name): each for each in waiting}
    count = GaugeMetricFamily("casework_reviews_waiting", "Reviews that wait for a person.", labels=OF_WORKFLOW)
    oldest = GaugeMetricFamily(
        "casework_review_oldest_seconds",
        "How long the oldest of them has waited; 0 where none does.",
        labels=OF_WORKFLOW,
    )
    for labels in sorted(known | pending.keys()):
        each = pending.get(labels)
        count.add_metric(labels, each.reviews if each else 0)
        oldest.add_metric(labels, _positive(each.oldest_seconds) if each else 0)
    yield from (count, oldest)
    yield _by_workflow("casework_reviews_asked", "Reviews asked.", used, lambda each: each.reviews_asked)
    yield _by_workflow(
        "casework_reviews_closed",
        "Reviews whose run ended without an answer.",
        used,
        lambda each: each.reviews_closed,
    )
    waited = SummaryMetricFamily(
        "casework_review_wait_seconds", "From the question to the accepted decision.", labels=OF_WORKFLOW
    )
    decided = _sums(used, lambda each: each.reviews_decided)
    for labels, seconds in sorted(_sums(used, lambda each: each.review_seconds).items()):
        waited.add_metric(labels, int(decided[labels]), float(seconds))
    yield waited


def _steps(operations: Iterable[Operation], in_flight: Iterable[InFlight]) -> Iterator[Metric]:
    flying = GaugeMetricFamily("casework_steps_in_flight", "Steps under way.", labels=OF_OPERATION)
    retrying = GaugeMetricFamily(
        "casework_steps_retrying", "Steps under way of which an attempt did not end well.", labels=OF_OPERATION
    )
    now = {(each.tenant, each.kind, each.name): each for each in in_flight}
    ends = {(each.tenant, each.kind, each.name): each for each in operations}
    for labels in sorted(now.keys() | ends.keys()):
        flying.add_metric(labels, now[labels].steps if labels in now else 0)
        retrying.add_metric(labels, now[labels].retrying if labels in now else 0)
    attempts = CounterMetricFamily(
        "casework_step_attempts", "Attempts of steps that ended, by outcome.", labels=(*OF_OPERATION, "outcome")
    )
    lasted = SummaryMetricFamily(
        "casework_step_attempt_duration_seconds", "From the claim to the report.", labels=OF_OPERATION
    )
    for labels, each in sorted(ends.items()):
        outcomes = {"COMPLETED": each.completed, "FAILED": each.failed, "LOST": each.lost, "LATE": each.late}
        for outcome, number in outcomes.items():
            attempts.add_metric((*labels, outcome), number)
        lasted.add_metric(labels, each.completed + each.failed + each.late, float(each.latency_ms / MS))
    yield from (flying, retrying, attempts, lasted)


def _spent(used: Iterable[Used]) -> Iterator[Metric]:
    calls = CounterMetricFamily("casework_calls", "Steps that ended, by kind.", labels=(*OF_WORKFLOW, "kind"))
    tokens = CounterMetricFamily("casework_tokens", "Tokens of models.", labels=(*OF_WORKFLOW, "direction"))
    parts: tuple[tuple[CounterMetricFamily, str, Callable[[Used], int | Decimal]], ...] = (
        (calls, "model", lambda each: each.model_calls),
        (calls, "tool", lambda each: each.tool_calls),
        (tokens, "in", lambda each: each.tokens_in),
        (tokens, "out", lambda each: each.tokens_out),
    )
    used = tuple(used)
    for family, label, part in parts:
        for labels, number in sorted(_sums(used, part).items()):
            family.add_metric((*labels, label), float(number))
    yield from (calls, tokens)
    yield _by_workflow("casework_cost", "Money spent on models, in the currency of the prices.", used, lambda u: u.cost)


def _by_workflow(name: str, text: str, used: Iterable[Used], part: Callable[[Used], int | Decimal]) -> Metric:
    family = CounterMetricFamily(name, text, labels=OF_WORKFLOW)
    for labels, number in sorted(_sums(used, part).items()):
        family.add_metric(labels, float(number))
    return family


def _sums(used: Iterable[Used], part: Callable[[Used], int | Decimal]) -> dict[tuple[str, str], Decimal]:
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for each in used:
        sums[each.tenant, each.workflow_name] += part(each)
    return sums


def _positive(seconds: Decimal) -> float:
    """Rows carry the engine's clock, and that may be a little ahead of the database's."""
    return max(float(seconds), 0.0)
