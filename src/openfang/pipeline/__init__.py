"""The one path that every call takes, whoever makes it and over whatever edge."""
