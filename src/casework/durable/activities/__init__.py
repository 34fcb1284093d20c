"""Activity bodies: where durable code meets the store and the models.

Each works in three parts: a short database transaction that applies the carried outbox and claims the step; the act,
with no connection held; a second transaction that commits result, message and event together, fenced by the attempt.
"""
