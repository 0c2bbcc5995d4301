"""The door by which extensions and skills come in: looked at, kept, and off until accepted."""
