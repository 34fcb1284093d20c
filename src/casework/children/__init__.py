"""Child processes of this program: started, recognised again, and stopped, without ever touching a stranger's.

Here belong locks that die with their holder, ports, the identity of a process, and the life of one server on one
folder. What the server is (PostgreSQL, Temporal, a worker) does not belong here, nor does any client library.

Two locks tell the truth about a folder, whatever was killed at whatever moment. The *owner's lock* is held by the
program that runs the server. The *server's lock* is an open file that the server inherits: while any of its
processes lives the lock is held, and when the last is gone it is free. No process id is trusted without it.
"""
