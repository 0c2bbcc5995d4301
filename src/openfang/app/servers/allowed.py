"""What an MCP server would be allowed to do, in plain words, before anybody accepts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.app.servers.translate import trust_of
from openfang.config.servers import HttpTransport, StdioTransport
from openfang.config.show import without_credentials
from openfang.core.tools import Trust

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openfang.config.servers import McpServer

_PATHS: Final = ("/", "~/", "./")
_TRUST: Final = {
    Trust.LOW: "ask a person for each call with an effect: its trust is low",
    Trust.MEDIUM: "be called as the gates allow: its trust is medium",
    Trust.HIGH: "say itself how harmless its tools are: its trust is high",
}


def may_words(server: McpServer) -> list[str]:
    """Say all of it."""
    match server.transport:
        case StdioTransport() as stdio:
            reached = _as_child(server, stdio)
        case HttpTransport() as http:
            reached = _at_address(server, http)
    return [*reached, *_offering(server)]


def _as_child(server: McpServer, stdio: StdioTransport) -> Iterator[str]:
    variables = _listed("know the variables", sorted(server.env))
    if server.sandbox == "off":
        yield "run without a sandbox: it reaches all that the node's user reaches"
        yield from variables
        return
    without = ", or bare where there is none" if server.sandbox == "auto" else ""
    yield f"run in a sandbox{without}"
    if not server.network:
        yield "not reach the network"
    elif server.allow_private:
        yield "reach the network, private addresses included, through the guarded egress"
    else:
        yield "reach the network through the guarded egress, and no private address"
    named = [word for word in stdio.args if word.startswith(_PATHS)]
    yield from _listed("write the folders and read the files that its arguments name", named)
    yield from _listed("read", server.fs_read)
    yield from _listed("write", server.fs_write)
    yield from variables


def _at_address(server: McpServer, http: HttpTransport) -> Iterator[str]:
    private = ", a private address included" if server.allow_private else ""
    yield f"be called at {without_credentials(http.url)}{private}"
    yield from _listed("be sent the headers", sorted(http.headers))


def _offering(server: McpServer) -> Iterator[str]:
    yield from (
        _listed("offer these tools", server.allow_tools)
        if server.allow_tools
        else ("offer any tool that it lists",)
    )
    yield from _listed("not have these effects", server.deny_side_effect_tags)
    yield _TRUST[trust_of(server)]


def _listed(words: str, values: Sequence[str]) -> Iterator[str]:
    if values:
        yield f"{words}: {', '.join(values)}"
