"""Agents elsewhere as tools, in whichever dialect of A2A they speak."""
