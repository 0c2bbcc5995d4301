"""The log of the daemon: what a line looks like, and where it goes."""
