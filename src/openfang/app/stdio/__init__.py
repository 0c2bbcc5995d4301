"""How `openfang mcp` serves a client on standard input and output."""
