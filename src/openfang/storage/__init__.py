"""What outlives the process: one database, one writer, and a small store for each noun."""
