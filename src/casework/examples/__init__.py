"""Applications that ship with the package, each a `casework.App` in a package of its own, run by this project's tests.

Here: complete examples, to be read, copied and started with `--app`. Not here: anything the platform needs; nothing
imports this package.
"""
