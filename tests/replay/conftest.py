"""The replay tier works on the same house as the durable tests."""

import pytest

from tests.integration.durable.conftest import house, loan_dsn

__all__ = ["house", "loan_dsn"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--record RELEASE`: keep the history of each kind of run that has none of that release yet."""
    parser.addoption("--record", default=None, help="record missing histories under this release")
