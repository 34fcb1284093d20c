"""Which steps of a visit are kept: by their place in the transcript, and only what was told."""

from __future__ import annotations

from casework.graph.keeping import MessageSeen, StepSeen, kept

V = "act.1/exchange"
MODEL_1, A, B, MODEL_2, C, MODEL_3 = (
    f"{V}.1/model.1",
    f"{V}.1/a.1",
    f"{V}.1/b.1",
    f"{V}.2/model.1",
    f"{V}.2/c.1",
    f"{V}.3/model.1",
)
STEPS = [
    StepSeen(MODEL_1, "model", "COMPLETED"),
    StepSeen(A, "tool", "COMPLETED"),
    StepSeen(B, "tool", "FAILED"),
    StepSeen(MODEL_2, "model", "COMPLETED"),
    StepSeen(C, "tool", "COMPLETED"),
    StepSeen(MODEL_3, "model", "COMPLETED"),
]
MESSAGES = [
    MessageSeen(MODEL_1, 4, "user"),
    MessageSeen(MODEL_1, 5, "assistant"),
    MessageSeen(A, 6, "tool"),
    MessageSeen(B, 7, "tool"),
    MessageSeen(MODEL_2, 8, "assistant"),
    MessageSeen(C, 9, "tool"),
    MessageSeen(MODEL_3, 10, "assistant"),
]
ALL = frozenset(step.path for step in STEPS)


def without(path: str, state: str | None = None) -> tuple[list[StepSeen], list[MessageSeen]]:
    """The visit where `path` left no message, and is in `state`."""
    steps = [StepSeen(each.path, each.kind, state or each.state) if each.path == path else each for each in STEPS]
    return steps, [each for each in MESSAGES if each.path != path]


def test_what_was_told_before_the_step_is_kept() -> None:
    """AW-15. A refusal that the model was told is a result as any other."""
    assert kept(STEPS, MESSAGES, {MODEL_2}) == {MODEL_1, A, B}
    assert kept(STEPS, MESSAGES, {B}) == {MODEL_1, A}
    assert kept(STEPS, MESSAGES, {A}) == {MODEL_1}
    assert kept(STEPS, MESSAGES, {MODEL_1}) == frozenset()


def test_an_exchange_is_its_first_step() -> None:
    """AW-15. Of several steps that are named at once the first counts."""
    assert kept(STEPS, MESSAGES, {MODEL_2, C}) == {MODEL_1, A, B}


def test_without_a_step_all_that_was_told_is_kept() -> None:
    """AW-14, AW-15. Of a visit that did not come to its end, the end is what is missing."""
    assert kept(STEPS, MESSAGES, ()) == ALL
    assert kept(*without(MODEL_3, "FAILED"), ()) == ALL - {MODEL_3}
    assert kept(*without(C, "STARTED"), ()) == ALL - {C}


def test_a_model_call_that_failed_is_made_again() -> None:
    """AW-15. The notes that stand in its place are not kept either."""
    steps, messages = without(MODEL_2, "FAILED")
    told = [each for each in messages if each.path not in (C, MODEL_3)]
    noted = [*told, MessageSeen(MODEL_2, 8, "note")]
    assert kept(steps[:4], noted, ()) == {MODEL_1, A, B}
    assert kept(steps[:4], told, ()) == {MODEL_1, A, B}


def test_a_step_that_left_no_message_has_the_first_place_that_it_can_have() -> None:
    """AW-15. A tool in flight comes after the answer that asked for it; nothing asked beside it is kept."""
    steps, messages = without(A, "STARTED")
    assert kept(steps[:3], messages[:3], {A}) == {MODEL_1}
