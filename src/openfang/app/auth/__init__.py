"""Who calls: keys, tokens of an issuer, what they open, and who knocks too often."""
