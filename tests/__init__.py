"""The tests. Tiers are folders; see the docstrings of each tier."""
