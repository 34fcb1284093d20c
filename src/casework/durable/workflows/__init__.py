"""Temporal workflows: deterministic code that walks a graph, waits for people and sends activities.

Belongs here: control flow. Does not belong here: I/O, a clock other than the engine's, settings, activity bodies.
"""
