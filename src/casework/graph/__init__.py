"""Graphs as data and the engine that walks them.

Here belong manifests, their loading and admission, expressions, templates, and the pure engine: it decides what runs
next and never runs it. Here do not belong clocks, ids, I/O, and anything that knows of Temporal, PostgreSQL or models.
"""
