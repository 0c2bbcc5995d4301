"""A session with a daemon over HTTP."""
