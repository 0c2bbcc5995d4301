"""The same state on a Postgres server, for when several nodes share it."""
