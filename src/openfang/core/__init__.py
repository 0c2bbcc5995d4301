"""Nouns and ports. Nothing here does I/O, and nothing here needs more than the standard library."""
