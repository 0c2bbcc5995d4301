"""Tools that people add: programs in folders of their own, behind a manifest."""
