"""The MCP servers of a node, from their entries to running sources."""
