"""Agents that are code: one warm, confined process for each, and many runs at once in it."""
