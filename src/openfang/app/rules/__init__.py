"""The operator's rules, looked at from outside: drafts checked, explained, tested, replayed."""
