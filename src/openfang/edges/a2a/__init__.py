"""Our agents for agents elsewhere: cards, tasks and messages in each dialect of A2A."""
