"""Skills: instructions that are read when needed, and programs that are run once a call."""
