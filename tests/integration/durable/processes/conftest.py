"""The tests of processes work on the same house as the other durable tests."""

from tests.integration.durable.conftest import house

__all__ = ["house"]
