"""The lines between us and the long-lived children that run code of other people's."""
