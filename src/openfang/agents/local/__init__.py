"""Models that are files of the operator's: each is served by a process of its own."""
