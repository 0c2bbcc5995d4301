"""The embedded model: no network, no key, no guesses."""
