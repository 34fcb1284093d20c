"""Tests of the task tree."""
