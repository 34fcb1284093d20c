"""Which traces are recorded: the standard samplers by their standard names.

The SDK's own ratio sampler looks at the upper bits of the lower half of a trace id. In an id that is a UUID those hold
its variant and are no chance, so half of all ratios would mean all or nothing. Ours looks at the lowest 56 bits, which
W3C Trace Context says are random, and they are in a run's id too.
"""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Decision, ParentBased, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState, get_current_span
from opentelemetry.util.types import Attributes

from casework.errors import SettingsError

NAMES = (
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
)
_RANDOM_BITS = 56


class RunRatio(Sampler):
    """Records the given share of traces, chosen by their id, so that every process chooses the same."""

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio
        self._bound = round(ratio * 2**_RANDOM_BITS)

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,  # noqa: ARG002  # the SDK's signature
        kind: SpanKind | None = None,  # noqa: ARG002  # the SDK's signature
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,  # noqa: ARG002  # the SDK's signature
        trace_state: TraceState | None = None,  # noqa: ARG002  # the SDK's signature
    ) -> SamplingResult:
        """By the trace id alone."""
        chosen = trace_id % 2**_RANDOM_BITS < self._bound
        state = get_current_span(parent_context).get_span_context().trace_state
        return SamplingResult(Decision.RECORD_AND_SAMPLE if chosen else Decision.DROP, attributes, state)

    def get_description(self) -> str:
        """For people."""
        return f"RunRatio{{{self._ratio}}}"


def sampler_of(name: str, argument: str | None) -> Sampler:
    """The sampler that OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG mean.

    Raises:
        SettingsError: there is no such sampler, or its ratio is none.
    """
    if name not in NAMES:
        raise SettingsError(
            f"OTEL_TRACES_SAMPLER is {name!r:.100}, which is not known. Use one of: {', '.join(NAMES)}.",
            field="OTEL_TRACES_SAMPLER",
        )
    kind = name.removeprefix("parentbased_")
    root = {"always_on": ALWAYS_ON, "always_off": ALWAYS_OFF}.get(kind) or RunRatio(_ratio(argument))
    return root if kind == name else ParentBased(root)


def _ratio(text: str | None) -> float:
    try:
        ratio = float(text or "1")
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise SettingsError(
            f"OTEL_TRACES_SAMPLER_ARG is {text!r:.100}, which is no share. Use a number from 0 to 1.",
            field="OTEL_TRACES_SAMPLER_ARG",
        )
    return ratio
