"""An entry of a server before it is written: what a start would say against it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from openfang.app.servers.allowed import may_words
from openfang.config.fields import Folders
from openfang.config.merge import frozen
from openfang.config.models import Place
from openfang.config.problems import Problem
from openfang.config.servers import HttpTransport, McpServer
from openfang.config.show import without_credentials
from openfang.config.validate import validated
from openfang.core.errors import ConfigError
from openfang.safety.urls import AddressRefused, parse_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.config.lines import Key

_USER_INFO: Final = "user_info"
_NO_FOLDERS: Final = Folders(home=Path("/"), user=Path("/"))


def allowed_by(entry: Mapping[str, Any]) -> list[str]:
    """Say what an entry would be allowed to do; of one that is wrong, nothing."""
    match validated(McpServer, frozen(dict(entry)), _nowhere, _NO_FOLDERS):
        case McpServer() as server:
            return may_words(server)
        case _:
            return []


def problem_of(entry: Mapping[str, Any]) -> str:
    """Say what is wrong with an entry, if anything is."""
    match validated(McpServer, frozen(dict(entry)), _nowhere, _NO_FOLDERS):
        case [Problem() as problem, *_]:
            return f"{problem.key}: {problem.message}"
        case McpServer(transport=HttpTransport(url=url)):
            return _problem_of_address(url)
        case _:
            return ""


def _problem_of_address(url: str) -> str:
    """Say what is wrong with an address that carries credentials: no connection is made to it."""
    try:
        parse_target(without_credentials(url))
    except AddressRefused as refused:
        if refused.rule == _USER_INFO:
            return f"transport.url: {refused.message}: {refused.way_out}"
    return ""


def server_of(entry: Mapping[str, Any]) -> McpServer:
    """Read an entry as a start would; one that it would refuse is refused."""
    found = validated(McpServer, frozen(dict(entry)), _nowhere, _NO_FOLDERS)
    if isinstance(found, McpServer):
        return found
    raise ConfigError(f"{found[0].key}: {found[0].message}.", way_out="openfang servers add --help")


def check_entry(entry: Mapping[str, Any]) -> None:
    """Refuse an entry that no start would accept."""
    if problem := problem_of(entry):
        raise ConfigError(f"{problem}.", way_out="openfang servers add --help")


def _nowhere(key: Key) -> Place:
    return Place(str(key))
