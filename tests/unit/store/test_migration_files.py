"""Names, order and checksums of migration files."""

from __future__ import annotations

import pytest

from casework.errors import MigrationError
from casework.store.migrate import ordered, shipped


def test_shipped_files_are_numbered_without_holes() -> None:
    """0001, 0002, ... each with one title."""
    numbers = sorted({migration.number for migration in shipped()})
    assert numbers == list(range(1, len(numbers) + 1))


def test_before_comes_before_after_of_the_same_number() -> None:
    """The order is number, then before, then after, whatever the order of the folder."""
    files = [("0002_b.before.sql", ""), ("0001_a.after.sql", ""), ("0001_a.before.sql", "")]
    assert [one.name for one in ordered(files)] == ["0001_a.before", "0001_a.after", "0002_b.before"]


@pytest.mark.parametrize("name", ["1_a.before.sql", "0001_a.sql", "0001_a.later.sql", "0001-a.before.sql", "x.sql"])
def test_odd_name_is_refused(name: str) -> None:
    """The message says how to call it."""
    with pytest.raises(MigrationError, match=r"Call it NNNN_title\.before\.sql"):
        ordered([(name, "")])


def test_two_titles_under_one_number_are_refused() -> None:
    """Two branches that took the same number are found before anything is applied."""
    with pytest.raises(MigrationError, match="Renumber the newer"):
        ordered([("0001_a.before.sql", ""), ("0001_b.before.sql", "")])


def test_checksum_is_of_the_text() -> None:
    """A changed character is another checksum."""
    one, two = (ordered([("0001_a.before.sql", text)])[0] for text in ("select 1", "select 2"))
    assert one.checksum != two.checksum
