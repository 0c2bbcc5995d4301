"""Install the Debian packages that the tests need, or say which are missing.

As root on Debian the missing ones are installed. Elsewhere the one command is printed, and tests
that need them report themselves as not run (with OPENFANG_TESTS=all that is a failure).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

PROGRAMS = {
    "bwrap": "bubblewrap",
    "chromium": "chromium",
    "curl": "curl",
    "fish": "fish",
    "ip": "iproute2",
    "mount": "mount",
    "systemd-analyze": "systemd",
    "tmux": "tmux",
    "unshare": "util-linux",
    "zsh": "zsh",
}


def main() -> int:
    missing = sorted(
        {package for program, package in PROGRAMS.items() if not shutil.which(program)}
    )
    if not missing:
        return 0
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"Some tests need programs that are missing. Run: sudo {' '.join(command)}")
        return 0
    subprocess.run(["apt-get", "update", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
