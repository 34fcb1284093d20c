"""The rows of the platform in PostgreSQL, and the only package that speaks SQL.

Here belong: the connection pool, migrations and roles, and one module per aggregate whose functions take an open
connection, so that callers compose them into short database transactions. Queries stand in `sql/`, one file per module.
Here does not belong: any decision of a run (pure packages), any call of a model or tool, anything of Temporal. A
function writes what it is told, over a row that may still change, and answers with a `WriteResult`.

Lock order, everywhere: first the run's row, then a step's, then the rest. Nothing here holds a connection between
calls.
"""
