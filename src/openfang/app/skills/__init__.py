"""Skills of the home: read, put in force, brought in from elsewhere."""
