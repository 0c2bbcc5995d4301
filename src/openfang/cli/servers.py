"""`openfang servers`: the MCP servers whose tools are offered."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from openfang.cli.errors import ERROR
from openfang.cli.options import Json
from openfang.cli.output import (
    clean,
    fields,
    first_sentence,
    is_terminal,
    note,
    print_json,
    say,
    table,
)
from openfang.cli.session import on_home

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from openfang.core.session import Session

T = TypeVar("T")
_HINT_SECONDS = 2.0
_HINT = "Waiting for servers to answer; Ctrl-C ends it."
_FEW_LINES = 3
_FOLDERS = re.compile(r"\A/\S*/(?=\S)")  # of the program
_LONG_PATH = re.compile(r"(?<=\s)/\S{8,}/(?=[^\s/]+/[^\s/]+(?:\s|\Z))")
_SETTLE_SECONDS = 20.0
_LOOK_SECONDS = 0.1
_UNSETTLED = ("connecting", "waiting")


def _on_home(work: Callable[[Session], Awaitable[T]]) -> T:
    """Do it; who waits longer than expected is told what for."""

    async def told(session: Session) -> T:
        wait = asyncio.get_running_loop().call_later(_HINT_SECONDS, note, _HINT)
        try:
            return await work(session)
        finally:
            wait.cancel()

    return on_home(told if is_terminal(sys.stderr) else work)


def list_servers(*, as_json: Json = False) -> None:
    """List the MCP servers, and how each is."""
    found = _on_home(lambda session: session.servers())
    if as_json:
        print_json(found)
        return
    counts = {one["name"]: one["tools_count"] for one in found["connected"]}
    rows = [_row(one, counts.get(one["name"])) for one in found["configured"]]
    if rows:
        table(("name", "state", "health", "tools", "reached by", "last error"), rows)
    else:
        note("There are no MCP servers. Add one: openfang servers add NAME -- COMMAND")
        note("or take over those of other programs: openfang import")


def _row(one: Mapping[str, Any], tools: int | None) -> tuple[object, ...]:
    reached = _reached(one.get("transport", {}))
    return (
        one["name"],
        one.get("state"),
        one["health"] or "",
        tools,
        _shortened(reached) if is_terminal(sys.stdout) else reached,
        one.get("last_error"),
    )


def _shortened(command: str) -> str:
    """Of long paths only the end: a list is looked at, `servers show` has the whole."""
    return _LONG_PATH.sub("\u2026/", _FOLDERS.sub("", command))


def _reached(transport: Mapping[str, Any]) -> str:
    if "url" in transport:
        return transport["url"]
    return " ".join((transport.get("command", ""), *transport.get("args", ())))


def show_server(name: str, /, *, as_json: Json = False) -> None:
    """Show everything that is known of an MCP server.

    Args:
        name: Its name.
    """
    found = _on_home(lambda session: session.server(name))
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
        "it may": "\n".join(found["may"]),
        "protocol": found["protocol_version"] or "",
        "server": _who(found["server_info"]),
        "runs on": found["node"] or "",
        "sandbox": "\n".join(_layers(found)),
        "tools": str(len(found["tools"])),
        "rejected tools": "\n".join(_rejected(found)),
        "written in": found["origin"],
        "last words": "\n".join(found["stderr"]),
    }
    fields({word: value for word, value in shown.items() if value})


def _layers(found: Mapping[str, Any]) -> list[str]:
    """Say what holds its child; one reason why nothing does is said once."""
    layers: list[Mapping[str, Any]] = found["layers"]
    if layers and not any(layer["active"] for layer in layers):
        return [f"none: {layers[0]['detail']}"]
    return [
        f"{layer['name']}: {'yes' if layer['active'] else 'no'} ({layer['detail']})"
        for layer in layers
    ]


def _who(info: Mapping[str, Any]) -> str:
    """Who answered, as it calls itself."""
    words = (str(info.get(key, "")) for key in ("title", "name", "version"))
    return " ".join(dict.fromkeys(word for word in words if word))


def _rejected(found: Mapping[str, Any]) -> list[str]:
    return [f"{tool['name']}: {tool['reason']}" for tool in found["rejected_tools"]]


def list_server_tools(name: str, /, *, as_json: Json = False) -> None:
    """List the tools of an MCP server, those that are held back or rejected included.

    Args:
        name: Its name.
    """
    found = _on_home(lambda session: session.server(name))
    if as_json:
        print_json(found["tools"])
        return
    _show_tools(found)
    for line in _rejected(found):
        note(f"rejected: {clean(line)}")


def _show_tools(found: Mapping[str, Any]) -> None:
    tools: Sequence[Mapping[str, Any]] = found["tools"]
    if not tools:
        note("It offers no tools." if found["connected"] else _why_not(found))
        return
    table(
        ("name", "risk", "side effects", "what it does"),
        [
            (
                tool["name"],
                tool["risk"],
                ", ".join(tool["side_effects"]) or "none",
                _state(tool)
                + first_sentence(tool["description"].removeprefix(f"[MCP:{found['name']}]")),
            )
            for tool in tools
        ],
    )


def _state(tool: Mapping[str, Any]) -> str:
    if tool["held"]:
        return "(held back) "
    return "" if tool["enabled"] else "(disabled) "


def _why_not(found: Mapping[str, Any]) -> str:
    """Say why a server is not connected, and what would help."""
    name, error = found["name"], clean(found["last_error"] or "")
    match found["state"]:
        case "disabled":
            return f"{name} is disabled: openfang servers enable {name}"
        case "sleeping":
            return f"{name} sleeps until one of its tools is called."
        case "failed":
            return f"{name} cannot be reached: {error}\nlook closer: openfang servers test {name}"
        case state:
            return f"{name} is {state}: openfang servers show {name}"


def health(*, as_json: Json = False) -> None:
    """Say of each enabled MCP server whether it is healthy, degraded or unhealthy."""
    found = _on_home(lambda session: session.server_health())
    if as_json:
        print_json(found)
    elif found:
        table(("name", "health"), list(found.items()))
    else:
        note("No MCP server is enabled.")


def refresh(*, as_json: Json = False) -> None:
    """Ask the MCP servers for their tools again; count those that answered, name the others."""
    found = _on_home(lambda session: session.refresh_servers())
    if as_json:
        print_json(found)
        return
    count = found["refreshed"]
    say(f"{count} {'server' if count == 1 else 'servers'} refreshed.")
    for one in found["failed"]:
        note(f"{one['name']} did not answer: {clean(one['reason'])}")


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
        return await settled(session, name)

    found = _on_home(work)
    if as_json:
        print_json(found)
        return
    tools = f", {len(found['tools'])} tools" if found["connected"] else ""
    say(f"{name}: {found['state']}{tools}")
    if not found["connected"] and found["state"] != "disabled":
        for line in found["stderr"][-_FEW_LINES:]:
            note(f"  {clean(line)}")
        note(_why_not(found))


async def settled(session: Session, name: str) -> Mapping[str, Any]:
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
    lines = _on_home(lambda session: session.server_log(name))
    if as_json:
        print_json(lines)
    for line in () if as_json else lines:
        say(clean(line))
    if not lines and not as_json:
        note(f"It wrote nothing. See how it is: openfang servers show {name}")


def try_server(name: str, /, *, as_json: Json = False) -> int:
    """Connect to an MCP server, list its tools and ask whether it is there; exits with 1 if not.

    Args:
        name: Its name.
    """
    found = _on_home(lambda session: session.try_server(name))
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
        "server": _who(found["server_info"]),
        "tools": "" if found["tools"] else "none",
        "rejected tools": "\n".join(_rejected(found)),
    }
    fields({word: value for word, value in shown.items() if value})
    if found["offers"]:
        say()
        prefix = f"[MCP:{found['server']}]"
        rows = [
            (
                tool["name"],
                tool["risk"],
                ", ".join(tool["side_effects"]) or "none",
                first_sentence(tool["description"].removeprefix(prefix)),
            )
            for tool in found["offers"]
        ]
        table(("tool", "risk", "side effects", "what it does"), rows)


def _show_failure(found: Mapping[str, Any]) -> None:
    shown = {
        "works": "no",
        "problem": found["problem"],
        "way out": found["way_out"],
        "last words": "\n".join(found["stderr"]),
    }
    fields({word: value for word, value in shown.items() if value})
