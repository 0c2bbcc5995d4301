"""Our own MCP server: one handler behind every way in."""
