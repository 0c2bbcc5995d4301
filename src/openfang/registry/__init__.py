"""All tools of all sources: classified, named, pinned, and found by any of their names."""
