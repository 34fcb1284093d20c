"""What the demo says of its kill."""

from casework.drills.demo import cut_off


def test_calls_of_other_cases_are_told_apart() -> None:
    """The counts at the end are over all cases; the sentence about the kill must fit them."""
    assert cut_off(["income"], ["credit"], 1) == "income completed, credit in flight"
    assert cut_off(["income"], ["credit"], 2).endswith("credit in flight; so is 1 call of the other cases")
    assert cut_off(["income"], ["credit"], 4).endswith("credit in flight; so are 3 calls of the other cases")
