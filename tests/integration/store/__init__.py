"""The store on a real PostgreSQL: each test has a database of its own, and writes in the runtime's role."""
