"""Recorded histories of every kind of run, replayed by the present code."""
