"""Owner and path are the identity of everything."""

from __future__ import annotations

from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casework import ids
from casework.errors import BlankIdError

RUN = UUID(int=7)
PATH = "underwrite.1/exchange.1/credit_check.1"


def test_a_step_is_its_owner_and_its_path() -> None:
    """DA-23. Ids are uuid5 of owner and path, and of the kind where one path has several things."""
    assert ids.step_id(RUN, PATH) == uuid5(RUN, PATH)
    kinds = {
        ids.step_id(RUN, PATH),
        ids.event_id(RUN, PATH, "a"),
        ids.event_id(RUN, PATH, "b"),
        ids.review_id(RUN, PATH),
    }
    assert len(kinds | {ids.message_id(RUN, PATH, 1), ids.message_id(RUN, PATH, 2)}) == 6


@given(st.uuids(), st.text(st.characters(exclude_categories=["Cs"])), st.text("ab:.#é1"))
def test_the_text_of_an_id_is_that_of_the_id(owner: UUID, path: str, kind: str) -> None:
    """DA-23. The quick way to many ids of one owner gives the same, and refuses the same."""
    if path.strip() or kind.strip():
        assert UUID(ids.derived_text(owner, path, kind)) == ids.derived_id(owner, path, kind)
        return
    with pytest.raises(BlankIdError):
        ids.derived_text(owner, path, kind)


def test_the_same_answer_twice_is_one_decision() -> None:
    """DA-23. A decision without an id of its caller is known by review, reviewer, command and reason."""
    review = ids.review_id(RUN, "decision.1")
    assert ids.decision_id(review, "ann", "approve", "") == ids.decision_id(review, "ann", "approve", "")
    assert ids.decision_id(review, "ann", "approve", "") != ids.decision_id(review, "bob", "approve", "")
    assert ids.decision_id(review, "a", "b", "c,d") != ids.decision_id(review, "a", "b,c", "d")


def test_a_key_names_one_run_per_tenant_and_user() -> None:
    """DA-8. The run of an idempotency key is derived from tenant, user and key."""
    made = {ids.run_id_for_key(t, u, "k") for t in ("a", "b") for u in ("x", "y")}
    assert len(made) == 4
    assert ids.run_id_for_key("a", "x", "k") in made


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_blank_ids_are_refused(blank: str) -> None:
    with pytest.raises(BlankIdError, match="Idempotency-Key is blank"):
        ids.run_id_for_key("default", "ann", blank)
    with pytest.raises(BlankIdError):
        ids.derived_id(RUN, blank)
