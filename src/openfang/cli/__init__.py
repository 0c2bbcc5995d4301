"""The command line: arguments in, text out. One command a file, imported when it runs."""
