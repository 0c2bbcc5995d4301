"""`openfang start`: read without the command library, which a daemon would hold in memory."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Sequence
from shlex import quote
from typing import TypedDict

import anyio

from openfang.app.daemon.background import log_file, start_apart
from openfang.app.daemon.discovery import Daemon
from openfang.app.home.paths import Home
from openfang.cli.errors import Usage
from openfang.cli.output import fields, note, say
from openfang.cli.shell import preparation
from openfang.config.home import find_home
from openfang.core.errors import HomeError

_LAST_PORT = 65_535
_LISTEN = re.compile(r"\A(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})\Z")


class _Options(TypedDict, total=False):
    listen: str
    any_port: bool
    detach: bool
    init: bool


def at_once(arguments: Sequence[str]) -> bool:
    """Do what follows `openfang start`; False if it says more than is understood here."""
    options = _read(arguments)
    if options is not None:
        start(**options)
    return options is not None


def _read(arguments: Sequence[str]) -> _Options | None:
    options = _Options()
    words = [word for one in arguments for word in one.split("=", 1)]
    while words:
        match words:
            case ["--listen", listen, *words] if "listen" not in options and listen[:1] != "-":
                options["listen"] = listen
            case ["--any-port", *words]:
                options["any_port"] = True
            case ["--detach", *words]:
                options["detach"] = True
            case ["--init", *words]:
                options["init"] = True
            case _:
                return None
    return options


def start(
    *,
    listen: str | None = None,
    any_port: bool = False,
    detach: bool = False,
    init: bool = False,
) -> None:
    """Serve the home over HTTP until told to end (Ctrl-C, `openfang stop`).

    Ending lets calls in flight finish; a second Ctrl-C does not.

    Args:
        listen: Where to listen, as `HOST:PORT`; port 0 picks a free one.
        any_port: Take a free port where the wished one is in use.
        detach: Go on in the background; return when it is healthy.
        init: Make the home first, if there is none.
    """
    _check(listen)
    home = Home(find_home(os.environ))
    if init:
        _make(home)
    if not home.exists:
        raise HomeError(
            f"There is no OpenFang home at {home.path}.",
            way_out="openfang start --init, or set OPENFANG_HOME",
        )
    if detach:
        daemon, warnings = start_apart(home.path, os.environ, listen=listen, any_port=any_port)
        _tell(home, daemon, warnings, {"log": log_file(home.path), "ends with": "openfang stop"})
    else:
        _serve(home, listen, any_port=any_port)


def _make(home: Home) -> None:
    from openfang.app.home.new import init_home  # noqa: PLC0415 - only a new home needs it

    if not home.key_file.exists():
        init_home(home.path, os.environ)


def _check(listen: str | None) -> None:
    found = _LISTEN.match(listen or "127.0.0.1:0")
    if found is None or int(found[2]) > _LAST_PORT:
        raise Usage(
            f"--listen is {listen!r}, expected HOST:PORT.", way_out="--listen 127.0.0.1:50051"
        )


def _serve(home: Home, listen: str | None, *, any_port: bool) -> None:
    # The server is imported by whoever serves, not by whoever only starts it.
    from openfang.app.daemon.process import Wishes, run_daemon  # noqa: PLC0415 - as above

    def told(daemon: Daemon, _: Sequence[str]) -> None:
        """Say where it is; what to beware of stands in the log, on the same terminal."""
        _tell(home, daemon, (), {"ends with": "Ctrl-C"})

    wishes = Wishes(told=told, listen=listen, any_port=any_port)
    gc.freeze()
    gc.enable()
    options = {"use_uvloop": True}
    anyio.run(run_daemon, home, os.environ, wishes, backend="asyncio", backend_options=options)


def _tell(home: Home, daemon: Daemon, warnings: Sequence[str], more: dict[str, object]) -> None:
    """Say where it is and what to do with it; that nobody reads it is no reason to end."""
    try:
        say(f"OpenFang {daemon.version} serves {home.path}")
        key = f"{home.key_file} (an administrator's; commands use it by themselves)"
        fields({"address": daemon.url, "process": daemon.pid, "key": key, **more})
        for warning in warnings:
            note(f"beware: {warning}")
        say("\nTry, in another terminal:")
        for command in examples(home, daemon.url):
            say(f"  {command}")
        sys.stdout.flush()
    except OSError:
        # What is left of it may not be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def examples(home: Home, url: str) -> tuple[str, ...]:
    """Commands that work as they stand, one after the other, in any folder."""
    key = f"Authorization: Bearer $(cat {quote(str(home.key_file))})"
    return (
        *preparation(home.path),
        "openfang tools call system_time",
        "openfang audit tail",
        f'curl -s -X POST {url}/api/tools/system_time/call \\\n    -H "{key}"',
    )
