"""PostgreSQL on this machine: the server's binaries from a wheel, run as a child of ours on a folder of ours.

Here belongs what starts and stops that server. SQL, pools and migrations do not: once it runs, it is any PostgreSQL.
"""

from casework.store.local.postgres import LocalPostgres

__all__ = ["LocalPostgres"]
