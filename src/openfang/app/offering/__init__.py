"""What is offered to whom over MCP: places, the names that things have there, and who may see."""
