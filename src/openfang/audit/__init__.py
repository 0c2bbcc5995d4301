"""The record of what happened: chained, signed, redacted, and written before the act."""
