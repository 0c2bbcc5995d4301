"""Is it too much? Depth, loops, rates, broken servers, calls at once: pure save for the queue."""
