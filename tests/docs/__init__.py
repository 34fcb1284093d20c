"""The documentation, run: its blocks of code, its commands, its links, and the pages that are written from code."""
