"""The parts of the store that need no server."""
