"""What the nodes of a cluster ask each other, and nobody else."""
