"""Integration tests work on real servers; the fixtures that start them are in `tests/conftest.py`."""
