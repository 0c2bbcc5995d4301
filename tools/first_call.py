"""Time the path of a new user: from `make run` in a fresh clone to the first governed call.

    python tools/first_call.py          with an empty package cache, as on a new machine
    python tools/first_call.py --warm   with the cache that is there

The clone, its home and the cache are made in a temporary folder, and are gone afterwards. Says how
busy the machine was: only a figure from idle cores says how long it takes.
"""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
SECONDS: Final = 600
_FIRST: Final = re.compile(rb"ALLOWED.*?audit \d+", re.DOTALL)
_SERVES: Final = re.compile(rb"Serving at|serves ")


def main() -> int:
    warm = "--warm" in sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="openfang-first-") as folder:
        clone = Path(folder, "clone")
        subprocess.run(["git", "clone", "--quiet", "--local", str(ROOT), str(clone)], check=True)
        began, load = time.monotonic(), os.getloadavg()[0]
        first, served = _watched(clone, _environ(Path(folder), warm=warm), began)
    print(f"to the first governed call   {first:.1f} s")
    print(f"until it serves              {served:.1f} s")
    print(f"load before and after        {load:.1f}, {os.getloadavg()[0]:.1f}")
    print(f"package cache                {'as it was' if warm else 'empty'}")
    return 0


def _environ(folder: Path, *, warm: bool) -> dict[str, str]:
    """Nothing of the person who measures: a home of its own, and a port that is free."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENFANG_")}
    cache = {} if warm else {"UV_CACHE_DIR": str(folder / "uv"), "PIP_NO_CACHE_DIR": "1"}
    return {**kept, **cache, "TERM": "xterm", "OPENFANG_LISTEN": "127.0.0.1:0"}


def _watched(clone: Path, environ: dict[str, str], began: float) -> tuple[float, float]:
    """Run it at a terminal, and note when it says what is waited for."""
    ours, theirs = pty.openpty()
    make = subprocess.Popen(
        ["make", "run"],
        cwd=clone,
        env=environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        first = _seen(ours, _FIRST, began)
        return first, _seen(ours, _SERVES, began)
    finally:
        os.killpg(make.pid, signal.SIGINT)
        make.wait(60)
        os.close(ours)


def _seen(terminal: int, pattern: re.Pattern[bytes], began: float) -> float:
    shown = b""
    while not pattern.search(shown):
        left = began + SECONDS - time.monotonic()
        if left < 0 or not select.select([terminal], [], [], left)[0]:
            raise SystemExit(f"It never said it: {shown.decode(errors='replace')}")
        try:
            shown += os.read(terminal, 65_536)
        except OSError:
            raise SystemExit(f"It has ended: {shown.decode(errors='replace')}") from None
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
