"""The composition root: the only place that sees both ends of the path."""
