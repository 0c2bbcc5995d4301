"""The tools that are always there, one family a file."""
