"""Durable execution on Temporal: contracts, workflows, activities, client, worker, schedules, the local server; and
what becomes of values on their way into histories (`converter`, `payloads`, `blobs`, `keys`).

Activities are the only place where durable code meets the store and the models. Workflow code (`workflows`) imports
`contracts`, `policies` and the pure floors, and does no I/O. Nothing here knows HTTP or the command line.
"""
