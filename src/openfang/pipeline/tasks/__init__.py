"""Calls that outlive their request: tasks, who watches them, and what becomes of them."""
