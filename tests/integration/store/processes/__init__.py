"""The rows of business processes on a real server."""
