"""Protocols as pure functions of messages: no I/O, shared by both sides."""
