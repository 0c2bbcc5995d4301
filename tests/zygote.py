"""Runs commands as `python -m openfang` does, each in a process of its own, forked from this one.

Everything is imported already, which is most of what a short command costs, and a daemon's start.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import select
import socket
import sys
import termios
import traceback
from importlib import import_module
from io import TextIOWrapper
from pkgutil import walk_packages
from typing import Any, NoReturn, TextIO

import openfang
from openfang.__main__ import main

_OTHERS = (
    "anyio._backends._asyncio",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "encodings.idna",
    "encodings.utf_8_sig",
    "importlib.readers",
    "jsonschema_rs",
    "uvicorn.lifespan.off",
    "uvloop",
    "yaml",
)
# Seldom used here, and much to import: what talks to models, and what is for other programs.
_LATER = ("openfang.agents.models.", "openfang.compat", "openfang.testing")
_STDERR = 2
MOST_BYTES = 200_000
MOST_FILES = 4096


def serve(connection: socket.socket) -> None:
    """Start what is asked for until the other end is closed; tell of each its number, and its end.

    With a request come its standard input, output and error, and where to tell of it.
    """
    watch = select.poll()
    watch.register(connection, select.POLLIN)
    running: dict[int, tuple[int, int]] = {}
    while True:
        for file, _ in watch.poll():
            if file in running:
                watch.unregister(file)
                _bury(file, *running.pop(file))
                continue
            message, files, _, _ = socket.recv_fds(connection, MOST_BYTES, 4)
            if not message:
                return
            child, report = _start(json.loads(message), files)
            handle = os.pidfd_open(child)
            running[handle] = child, report
            watch.register(handle, select.POLLIN)


def _start(request: dict[str, Any], files: list[int]) -> tuple[int, int]:
    *standard, report = files
    child = os.fork()
    if child == 0:
        _run(request, standard)
    for file in standard:
        os.close(file)
    os.write(report, str(child).encode())
    return child, report


def _bury(handle: int, child: int, report: int) -> None:
    _, status = os.waitpid(child, 0)
    try:
        os.write(report, str(os.waitstatus_to_exitcode(status)).encode())
    except BrokenPipeError:
        pass  # nobody asks any more
    finally:
        os.close(report)
        os.close(handle)


def _run(request: dict[str, Any], files: list[int]) -> NoReturn:
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(len(files), MOST_FILES)
    if request["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin, sys.stdout, sys.stderr = _stream(0, "r"), _stream(1, "w"), _stream(2, "w")
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[0] = request["folder"]
    sys.argv = ["openfang", *request["arguments"]]
    os._exit(_exit_code())


def _stream(number: int, mode: str) -> TextIO:
    """Make a stream anew: whether it can be sought in was asked when it was made."""
    errors = "backslashreplace" if number == _STDERR else "surrogateescape"
    raw = open(number, mode + "b", closefd=False)  # noqa: SIM115 - it stays open
    return TextIOWrapper(raw, "utf-8", errors, line_buffering=number == _STDERR)


def _exit_code() -> int:
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


def _preload() -> None:
    for module in walk_packages(openfang.__path__, "openfang."):
        if not module.name.startswith(_LATER):
            import_module(module.name)
    for name in _OTHERS:
        import_module(name)
    # What is here stays, so that no child has to look at it (and to copy it) to collect its own.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _preload()
    with socket.socket(fileno=int(sys.argv[1])) as ours:
        serve(ours)
