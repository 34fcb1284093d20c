"""The rows of business processes: Transactions, claims, the ledger of their Tasks, errors, Monitors.

Here belongs what `process_ops` holds. Functions give and take the values of `casework.process`, and decide nothing of
what a Transaction may become. Does not belong here: the walk of a tray, and what follows a failure.

Lock order: first the Transaction's row, then its step, then the rest; several Transactions in the order of their ids.
"""
