"""Sources of work: input monitors that read mailboxes, folders, databases and an HTTP inbox.

Belongs here: what is read from outside, how it is bounded and told apart, and what its source hears when it is taken.
Each source is an object that lives as long as the worker (`Mailbox`, `Folder`, `SqlSource`), made of a settings value;
its monitor asks for it by type and can be derived from. Does not belong here: when a Monitor polls (`process`), how
Transactions are kept (`store`), and what becomes of them. Secrets are named in settings, never written there.
"""
