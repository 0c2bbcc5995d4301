"""`openfang config reload`."""

from __future__ import annotations

import os

import anyio

from openfang.app.daemon.status import reload_config as reload
from openfang.app.home.paths import Home
from openfang.cli.options import Json
from openfang.cli.output import clean, note, print_json, say
from openfang.config.home import find_home


def reload_config(*, as_json: Json = False) -> None:
    """Let the daemon read its configuration anew; a bad one leaves the old one in force."""
    home = Home(find_home(os.environ))
    told = anyio.run(reload, home, os.environ)
    if as_json:
        print_json(told)
        return
    if told is None:
        note("No daemon runs: each command reads the configuration by itself.")
        return
    state = told["state"]
    say(f"{clean(state['file'])} is in force.")
    if state["needs_restart"]:
        note(f"in force after a restart: {', '.join(state['needs_restart'])}")
