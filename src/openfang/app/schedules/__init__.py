"""Agents that act on their own time: schedules, and what becomes of each moment that is due."""
