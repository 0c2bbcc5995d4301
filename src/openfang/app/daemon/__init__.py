"""The daemon: its process, what it serves, and who finds it."""
