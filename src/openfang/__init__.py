"""OpenFang: one governed path between AI agents, their tools and the world."""
