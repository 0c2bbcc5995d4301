"""The web page: what a person sees of the node in a browser. Nothing here is loaded before that."""
