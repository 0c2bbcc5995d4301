"""How fast we are: CPU of our process per call, beside a baseline in the same run."""
