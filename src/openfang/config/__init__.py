"""One strict model of the configuration, and the way from files to it."""
