"""Runs the suite, and forks each client that it asks for from this process, which has all imported.

`forking.py SOCKET PROGRAM...` runs the program until it ends; `asking.py SOCKET URL` asks for one.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import traceback
from importlib import import_module
from typing import NoReturn

from tests.conformance.client import start

# What a client imports only when it has to sign in, and what its loop is made of.
_PRELOADED = (
    "anyio._backends._asyncio",
    "openfang.host.http",
    "openfang.sources.mcp.find",
    "openfang.sources.mcp.oauth.flow",
    "openfang.sources.mcp.oauth.signed",
    "uvloop",
)
MOST_BYTES = 200_000
MOST_CLIENTS = 100


def serve(address: str, program: list[str]) -> int:
    """Run the program to its end, and give its exit code."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen(MOST_CLIENTS)
        with subprocess.Popen(program) as running:
            watch = select.poll()
            watch.register(listening, select.POLLIN)
            watch.register(ended := os.pidfd_open(running.pid), select.POLLIN)
            while ended not in [file for file, _ in watch.poll()]:
                _answer(listening)
            return running.wait()


def _answer(listening: socket.socket) -> None:
    asking, _ = listening.accept()
    with asking:
        message, files, _, _ = socket.recv_fds(asking, MOST_BYTES, 3)
        if os.fork() == 0:
            _run(asking, json.loads(message), files)
    for file in files:
        os.close(file)


def _run(asking: socket.socket, request: dict[str, dict[str, str]], files: list[int]) -> NoReturn:
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [__file__, *request["arguments"]]
    asking.send(str(_exit_code()).encode())
    os._exit(0)


def _exit_code() -> int:
    try:
        start()
    except SystemExit as ending:
        print(ending, file=sys.stderr)  # noqa: T201 - as the interpreter does
        return 1
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
    sys.exit(serve(sys.argv[1], sys.argv[2:]))
