"""Tests of the whole product as a user runs it: real processes, real servers, SIGKILL."""
