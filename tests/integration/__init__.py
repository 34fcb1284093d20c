"""Tests on real servers."""
