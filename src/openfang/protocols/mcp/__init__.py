"""The Model Context Protocol, in both of its eras."""
