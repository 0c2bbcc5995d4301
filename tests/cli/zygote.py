"""Runs commands as `python -m openfang` does, each in a process of its own, forked from this one.

Everything is imported already, which is most of what a short command costs.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import traceback
from importlib import import_module
from typing import Any, NoReturn

_PRELOADED = (
    "anyio._backends._asyncio",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "openfang.app.local",
    "openfang.app.verify",
    "openfang.cli.app",
    "openfang.cli.approvals",
    "openfang.cli.audit",
    "openfang.cli.backup",
    "openfang.cli.batch",
    "openfang.cli.call",
    "openfang.cli.config",
    "openfang.cli.doctor",
    "openfang.cli.explain",
    "openfang.cli.keys",
    "openfang.cli.spec",
    "openfang.cli.start",
    "openfang.cli.status",
    "openfang.cli.stop",
    "openfang.cli.tools",
    "uvloop",
)
MOST_BYTES = 200_000


def serve(connection: socket.socket) -> None:
    """Answer each request with an exit code, until the other end is closed."""
    while True:
        message, files, _, _ = socket.recv_fds(connection, MOST_BYTES, 3)
        if not message:
            return
        child = os.fork()
        if child == 0:
            _run(json.loads(message), files)
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _run(request: dict[str, Any], files: list[int]) -> NoReturn:
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["openfang", *request["arguments"]]
    os._exit(_exit_code())


def _exit_code() -> int:
    from openfang.__main__ import main  # noqa: PLC0415 - in the child alone

    try:
        main()
    except SystemExit as ending:
        code = ending.code
        return code if isinstance(code, int) else int(code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        return 1
    else:
        return 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    for name in _PRELOADED:
        import_module(name)
    with socket.socket(fileno=int(sys.argv[1])) as ours:
        serve(ours)
