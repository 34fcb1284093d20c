"""Tests of what drills stand on, on real servers."""
