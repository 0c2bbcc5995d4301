"""Tools that MCP servers serve, over stdio and HTTP, in both eras of the protocol."""
