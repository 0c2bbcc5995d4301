"""Other programs' configurations: our entry in theirs, and their servers in ours."""
