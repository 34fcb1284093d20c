"""The contestants of the benchmark of processes: ours, PgQueuer and Procrastinate, each with its own database."""
