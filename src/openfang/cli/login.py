"""`openfang servers login` and `logout`: a person signs in to an MCP server, or out of it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from openfang.app.servers.login import open_in_browser, sign_in
from openfang.cli.options import Json
from openfang.cli.output import clean, note, print_json, say
from openfang.cli.servers import settled
from openfang.cli.session import on_home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.session import Session


def login(
    name: str,
    /,
    *,
    no_browser: Annotated[
        bool, Parameter(help="Open no browser: only show the address to open.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Sign in to an MCP server that wants it; the browser has to be one of this machine.

    Args:
        name: Its name.
    """

    def show(url: str) -> None:
        note(f"Sign in here, within 5 minutes: {clean(url)}")
        if not no_browser and sys.stderr.isatty():
            open_in_browser(url)

    async def work(session: Session) -> Mapping[str, Any]:
        await session.secrets()  # who may not keep a secret here may not keep a sign-in
        signed = await sign_in(name, os.environ, show=show)
        await session.change_server(name, "login")
        found = await settled(session, name)
        return {**signed, "state": found["state"], "last_error": found["last_error"]}

    found = on_home(work)
    if as_json:
        print_json(found)
        return
    say(f"{name}: signed in, {found['state']}")
    if found["last_error"]:
        note(clean(found["last_error"]))


def logout(name: str, /) -> None:
    """Forget the sign-in to an MCP server.

    Args:
        name: Its name.
    """
    on_home(lambda session: session.change_server(name, "logout"))
    say(f"{name}: signed out")
