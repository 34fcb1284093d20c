"""A change of address, done by four tools: one for each way in which a tool may be safe to repeat.

Read `tools.py` first: each tool is written as one of your own would be. `office.py` is the server they act on, a
process of its own that counts what really happened; `tables.sql` makes the table that the transactional tool writes.
`casework drill --kills N` runs this application where no other is named, and kills its workers at every point.
"""

from casework.examples.repeat_safety.application import app

__all__ = ["app"]
