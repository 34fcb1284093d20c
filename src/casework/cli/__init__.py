"""The command line: what a person or a script types, turned into one call of an API or of a server.

Here belong commands, the reading of files given to them, and printing. Here do not belong rules: `runs`, `review`,
`workflows`, `apply` and the other commands on resources are clients of the HTTP API, so that its rules hold for them;
`worker`, `api`, `migrate`, `token`, `policy` and `audit` work on the servers directly. A command imports what it needs
when it runs, so that `--help` stays quick.
"""

from __future__ import annotations


def main() -> None:
    """Entry point of the `casework` command."""
    from casework.cli.root import run

    run()


__all__ = ["main"]
