"""`openfang servers add|remove`: entries of the configuration."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from openfang.app.connect.importing import IN_SIGHT, holds_secret
from openfang.app.servers.entries import check_entry
from openfang.cli.errors import Usage
from openfang.cli.options import Json
from openfang.cli.output import clean, note, print_json, say
from openfang.cli.session import on_home


def add(
    name: str,
    /,
    *command: str,
    url: Annotated[str | None, Parameter(help="Its address, instead of a command.")] = None,
    transport: Annotated[
        Literal["http", "sse"], Parameter(name="--type", help="How an address is spoken to.")
    ] = "http",
    env: Annotated[
        tuple[str, ...], Parameter(help="NAME to pass on, or NAME=VALUE; can be repeated.")
    ] = (),
    header: Annotated[
        tuple[str, ...], Parameter(help="'Name: value', `${NAME}` expands; can be repeated.")
    ] = (),
    timeout: Annotated[float | None, Parameter(help="Seconds for one request.")] = None,
    trust: Annotated[
        Literal["low", "medium", "high"] | None, Parameter(help="How far it is trusted.")
    ] = None,
    allow_tool: Annotated[
        tuple[str, ...], Parameter(help="A tool that may be seen; can be repeated. Else all.")
    ] = (),
    allow_private: Annotated[
        bool, Parameter(help="Open loopback and private addresses to it.")
    ] = False,
    lazy: Annotated[bool, Parameter(help="Connect at the first call.")] = False,
    singleton: Annotated[
        bool, Parameter(help="Run it on one node of a cluster at a time.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write an MCP server down; it waits until it is enabled.

    For example `openfang servers add time -- uvx mcp-server-time`, or `--url https://...`; then
    `openfang servers test time` and `openfang servers enable time`.

    Args:
        name: What to call it.
        command: The program and its arguments, after `--`.
    """
    entry: dict[str, Any] = {"name": name, "transport": _transport(command, url, transport, header)}
    more = {
        "env": _env(env),
        "timeout_secs": timeout,
        "trust": trust,
        "allow_tools": list(allow_tool),
        "allow_private": allow_private,
        "lazy": lazy,
        "singleton": singleton,
    }
    entry |= {key: value for key, value in more.items() if value}
    check_entry(entry)
    found = on_home(lambda session: session.add_server(entry))
    if as_json:
        print_json(found)
        return
    say(f"{name} is written in {found['origin']}, and waits until it is enabled.")
    for words in found["may"]:
        say(f"  it may {clean(words)}")
    if holds_secret(entry["transport"]):
        note(IN_SIGHT)
    note(f"see whether it works: openfang servers test {name}")
    note(f"let it run: openfang servers enable {name}")


def _transport(
    command: tuple[str, ...], url: str | None, kind: str, headers: tuple[str, ...]
) -> dict[str, Any]:
    if bool(command) is (url is not None):
        raise Usage(
            "A server has a command or an address.",
            way_out="openfang servers add NAME -- COMMAND ARGUMENTS, or --url https://...",
        )
    if url is None:
        if headers:
            raise Usage("A command has no headers.", way_out="--env NAME=VALUE")
        program, *arguments = command
        return {"type": "stdio", "command": program, **({"args": arguments} if arguments else {})}
    given = dict(_header(text) for text in headers)
    return {"type": kind, "url": url, **({"headers": given} if given else {})}


def _header(text: str) -> tuple[str, str]:
    name, mark, value = text.partition(":")
    if not mark or not name.strip():
        raise Usage("--header is no header.", way_out="--header 'Authorization: Bearer ${TOKEN}'")
    return name.strip(), value.strip()


def _env(given: tuple[str, ...]) -> dict[str, str] | list[str]:
    """Names alone stay names; with a value among them all become a table."""
    if not any("=" in text for text in given):
        return list(given)
    pairs = (text.partition("=") for text in given)
    return {name: value if mark else f"${{{name}}}" for name, mark, value in pairs}


def remove(name: str, /) -> None:
    """Take an MCP server out of the configuration; a copy of the file as it was stays beside it.

    Args:
        name: Its name.
    """
    found = on_home(lambda session: session.remove_server(name))
    say(f"{found['name']} is removed.")
    note(f"{found['origin'].rpartition(':')[0]}.bak has it as it was")
