"""`openfang servers`: the MCP servers whose tools are offered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
from cyclopts import Parameter

from openfang.cli.errors import ERROR, Usage
from openfang.cli.options import Json
from openfang.cli.output import (
    clean,
    fields,
    first_sentence,
    json_text,
    note,
    print_json,
    say,
    table,
)
from openfang.cli.session import on_home

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.session import Session

_INDENTED = 1
_SETTLE_SECONDS = 20.0
_LOOK_SECONDS = 0.1
_UNSETTLED = ("connecting", "waiting")


def list_servers(*, as_json: Json = False) -> None:
    """List the MCP servers, and how each is."""
    found = on_home(lambda session: session.servers())
    if as_json:
        print_json(found)
        return
    counts = {one["name"]: one["tools_count"] for one in found["connected"]}
    rows = [_row(one, counts.get(one["name"])) for one in found["configured"]]
    if rows:
        table(("name", "state", "health", "tools", "transport", "reached by", "last error"), rows)
    else:
        note("There are no MCP servers. Add one: openfang servers add NAME -- COMMAND")


def _row(one: Mapping[str, Any], tools: int | None) -> tuple[object, ...]:
    transport: Mapping[str, Any] = one.get("transport", {})
    return (
        one["name"],
        one.get("state"),
        one["health"] or "",
        tools,
        transport.get("type"),
        _reached(transport),
        one.get("last_error"),
    )


def _reached(transport: Mapping[str, Any]) -> str:
    if "url" in transport:
        return transport["url"]
    return " ".join((transport.get("command", ""), *transport.get("args", ())))


def show_server(name: str, /, *, as_json: Json = False) -> None:
    """Show everything that is known of an MCP server.

    Args:
        name: Its name.
    """
    found = on_home(lambda session: session.server(name))
    if as_json:
        print_json(found)
        return
    shown = {
        "name": found["name"],
        "state": found["state"],
        "health": found["health"] or "",
        "last error": found["last_error"] or "",
        "transport": found["transport"]["type"],
        "reached by": _reached(found["transport"]),
        "headers": ", ".join(found["transport"].get("headers", ())),
        "variables": ", ".join(found["env"]),
        "timeout": f"{found['timeout_secs']:g} s",
        "trust": found["trust"],
        "protocol": found["protocol_version"] or "",
        "server": json_text(found["server_info"]) if found["server_info"] else "",
        "tools": str(len(found["tools"])),
        "rejected tools": "\n".join(_rejected(found)),
        "written in": found["origin"],
        "last words": "\n".join(found["stderr"]),
    }
    fields({word: value for word, value in shown.items() if value})


def _rejected(found: Mapping[str, Any]) -> list[str]:
    return [f"{tool['name']}: {tool['reason']}" for tool in found["rejected_tools"]]


def list_server_tools(name: str, /, *, as_json: Json = False) -> None:
    """List the tools of an MCP server, those that are held back or rejected included.

    Args:
        name: Its name.
    """
    found = on_home(lambda session: session.server(name))
    if as_json:
        print_json(found["tools"])
        return
    _show_tools(found["tools"])
    for line in _rejected(found):
        note(f"rejected: {clean(line)}")


def _show_tools(tools: Sequence[Mapping[str, Any]]) -> None:
    if not tools:
        note("It offers no tools.")
        return
    table(
        ("name", "risk", "side effects", "state", "what it does"),
        [
            (
                tool["name"],
                tool["risk"],
                ", ".join(tool["side_effects"]) or "none",
                tool["held"] or ("enabled" if tool["enabled"] else "disabled"),
                first_sentence(tool["description"]),
            )
            for tool in tools
        ],
    )


def health(*, as_json: Json = False) -> None:
    """Say of each enabled MCP server whether it is healthy, degraded or unhealthy."""
    found = on_home(lambda session: session.server_health())
    if as_json:
        print_json(found)
    elif found:
        table(("name", "health"), list(found.items()))
    else:
        note("No MCP server is enabled.")


def refresh(*, as_json: Json = False) -> None:
    """Ask every connected MCP server for its tools again, and count those that answered."""
    count = on_home(lambda session: session.refresh_servers())
    if as_json:
        print_json({"refreshed": count})
    else:
        say(f"{count} refreshed.")


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
    as_json: Json = False,
) -> None:
    """Write an MCP server down; it waits until it is enabled.

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
    }
    entry |= {key: value for key, value in more.items() if value}
    found = on_home(lambda session: session.add_server(entry))
    if as_json:
        print_json(found)
        return
    say(f"{name} is written in {found['origin']}, and waits.")
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


def enable(name: str, /, *, as_json: Json = False) -> None:
    """Accept an MCP server: it is connected, now and at every start.

    Args:
        name: Its name.
    """
    _changed(name, "enable", as_json=as_json)


def disable(name: str, /, *, as_json: Json = False) -> None:
    """Let an MCP server go; its entry stays.

    Args:
        name: Its name.
    """
    _changed(name, "disable", as_json=as_json)


def restart(name: str, /, *, as_json: Json = False) -> None:
    """Connect to an MCP server anew.

    Args:
        name: Its name.
    """
    _changed(name, "restart", as_json=as_json)


def _changed(name: str, act: str, *, as_json: bool) -> None:
    async def work(session: Session) -> Mapping[str, Any]:
        await session.change_server(name, act)
        return await _settled(session, name)

    found = on_home(work)
    if as_json:
        print_json(found)
        return
    tools = f", {len(found['tools'])} tools" if found["connected"] else ""
    say(f"{name}: {found['state']}{tools}")
    if found["last_error"]:
        note(clean(found["last_error"]))


async def _settled(session: Session, name: str) -> Mapping[str, Any]:
    """Wait until it is known whether the server can be reached."""
    found = await session.server(name)
    with anyio.move_on_after(_SETTLE_SECONDS):
        while found["state"] in _UNSETTLED:
            await anyio.sleep(_LOOK_SECONDS)
            found = await session.server(name)
    return found


def logs(name: str, /, *, as_json: Json = False) -> None:
    """Show what an MCP server last wrote for people, on its standard error.

    Args:
        name: Its name.
    """
    lines = on_home(lambda session: session.server_log(name))
    if as_json:
        print_json(lines)
    for line in () if as_json else lines:
        say(clean(line))
    if not lines and not as_json:
        note("It wrote nothing.")


def try_server(name: str, /, *, as_json: Json = False) -> int:
    """Connect to an MCP server, list its tools and ask whether it is there; exits with 1 if not.

    Args:
        name: Its name.
    """
    found = on_home(lambda session: session.try_server(name))
    if as_json:
        print_json(found)
    elif found["ok"]:
        _show_success(found)
    else:
        _show_failure(found)
    return 0 if found["ok"] else ERROR


def _show_success(found: Mapping[str, Any]) -> None:
    shown = {
        "works": f"yes, in {found['seconds']:.2f} s",
        "protocol": found["protocol_version"] or "",
        "server": json_text(found["server_info"]),
        "tools": ", ".join(found["tools"]) or "none",
        "rejected tools": "\n".join(_rejected(found)),
    }
    fields({word: value for word, value in shown.items() if value})


def _show_failure(found: Mapping[str, Any]) -> None:
    shown = {
        "works": "no",
        "problem": found["problem"],
        "way out": found["way_out"],
        "last words": "\n".join(found["stderr"]),
    }
    fields({word: value for word, value in shown.items() if value})
