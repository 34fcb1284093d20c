"""Measurements of this project beside its peers, both sides in one run. `make bench` runs all and writes the table."""
