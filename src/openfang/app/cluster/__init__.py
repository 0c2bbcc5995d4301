"""Several nodes on one database: who they are, what only one has, how they speak to each other."""
