"""Business processes on a real engine and a real database."""
