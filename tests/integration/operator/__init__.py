"""What an operator sees of waits, retries, database faults and failed tools, on real servers with real faults."""
