"""A2A in both directions, put together: what is offered, what is kept, who is known elsewhere."""
