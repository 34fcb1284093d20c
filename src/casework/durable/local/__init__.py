"""Temporal on this machine: the official development server, run as a child of ours on a folder of ours.

Here belongs what finds, starts and stops that server. Clients and workers do not: once it runs, it is any Temporal.
"""

from casework.durable.local.temporal import LocalTemporal

__all__ = ["LocalTemporal"]
