"""Another program in the middle of a change: it holds a database until its input ends."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing

if __name__ == "__main__":
    with closing(sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)) as database:
        database.execute("BEGIN IMMEDIATE")
        print("held", flush=True)  # noqa: T201 - whoever started it reads this
        sys.stdin.read()
        database.execute("ROLLBACK")
