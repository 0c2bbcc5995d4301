"""Questions to people: who may answer, where they are sent, and when they are over."""
