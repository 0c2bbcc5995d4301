"""What agents think with when it is a provider's model: whom to ask, and what it says."""
