"""What touches the machine: processes, files, the network and the keys. Nobody above does."""
