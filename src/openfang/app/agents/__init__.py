"""The agents of a node, and what people do with them."""
