"""What benchmarks stand on: real servers in a temporary folder, the engine's bill, figures of processes.

Belongs here: starting, counting, reading. Does not belong here: what is compared, and how it is printed.
"""
