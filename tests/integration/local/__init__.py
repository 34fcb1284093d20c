"""Tests of the servers that run on this machine."""
