"""A2A as pure functions of JSON: no I/O here."""
