"""What nodes tell each other of a chain of calls, and of what comes back: words, and signatures."""
