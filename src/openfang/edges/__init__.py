"""Where peers come in."""
