"""Counts the lines that it is given."""

import sys

lines = [line for line in sys.stdin if line.strip()]
sys.stdout.write(f"{len(lines)} changes, told by {sys.argv[1:]}\n")
