"""Warm children: one confined process for each program, and many runs at once in it."""
