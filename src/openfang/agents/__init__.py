"""Agents: who they are, how they think, and what they remember."""
