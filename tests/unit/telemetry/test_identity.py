"""Places of spans: made of run and path, carried as W3C Trace Context, and never trusted blindly."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from casework.telemetry.identity import Place, name_at, parent_path, place_of, span_id_of, trace_id_of

RUN = UUID("6f2d2f0e-5b0c-4d39-9f0a-0c5f4b7f3a11")


def test_the_trace_of_a_run_is_its_id() -> None:
    assert f"{trace_id_of(RUN):032x}" == RUN.hex


def test_a_span_has_the_same_id_wherever_it_is_made() -> None:
    paths = ["", "underwrite.1", "underwrite.1/exchange.1", "underwrite.2"]
    ids = {span_id_of(RUN, path) for path in paths}
    assert len(ids) == len(paths)
    assert all(0 < each < 2**64 for each in ids)
    assert span_id_of(RUN, "underwrite.1") == span_id_of(UUID(str(RUN)), "underwrite.1")
    assert span_id_of(uuid4(), "") != span_id_of(RUN, "")


def test_a_place_survives_the_way() -> None:
    for place in (Place(1, 2), Place(2**128 - 1, 2**64 - 1, sampled=False), Place(7, 8, state="vendor=a,other=b")):
        assert place_of(place.carrier()) == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "\u0660\u0660-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "x" * 100_000,
    ],
)
def test_what_is_no_traceparent_begins_a_new_trace(text: str) -> None:
    assert place_of({"traceparent": text}) is None


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    place = place_of({"traceparent": "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-more"})
    assert place is not None
    assert place.sampled


def test_a_state_that_is_too_long_is_dropped() -> None:
    carrier = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "tracestate": "a" * 513}
    place = place_of(carrier)
    assert place is not None
    assert (place.state, place.sampled) == ("", False)


def test_paths_are_read_from_their_ends() -> None:
    assert (parent_path("a.1/b.2"), parent_path("a.1"), name_at("a.1/b-c.12"), name_at("")) == ("a.1", "", "b-c", "")
