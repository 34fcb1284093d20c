"""One loop of two nodes, as a graph of ours and of each peer, each written as its own documentation has it.

A node counts, the other asks whether to go round again. A *step* is one execution of one of the two, so `rounds` rounds
are twice as many steps on every side, whatever else a side does between them.
"""
