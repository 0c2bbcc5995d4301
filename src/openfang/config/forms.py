"""How each program writes down an MCP server: its words for a command, an address and a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.errors import NotFound
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.config.show import Plain

HOME: Final = "OPENFANG_HOME"
_AUTHORIZATION: Final = "Authorization"
_BEARER: Final = "Bearer "
_OURS: Final = frozenset({HOME, _AUTHORIZATION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One program. `word` is what people type; without a word for addresses it takes commands only.

    Programs that tell the two kinds apart by a `type` have a word for each.
    """

    word: str
    client: str
    table: str = "mcpServers"
    url: str = "url"
    headers: str = "headers"
    stdio: str = ""
    http: str = ""

    def command(self, words: Sequence[str], env: Mapping[str, str]) -> dict[str, Plain]:
        """Write a server that is started."""
        program, *args = words
        entry: dict[str, Plain] = {"type": self.stdio} if self.stdio else {}
        entry |= {"command": program, "args": [*args]}
        return {**entry, "env": {**env}} if env else entry

    def address(self, url: str, secret: str) -> dict[str, Plain]:
        """Write a server that is reached over HTTP, with a key."""
        entry: dict[str, Plain] = {"type": self.http} if self.http else {}
        headers: dict[str, Plain] = {_AUTHORIZATION: f"{_BEARER}{secret}"}
        return {**entry, self.url: url, self.headers: headers}

    def merged(self, entry: Mapping[str, Plain], old: Mapping[str, Any]) -> dict[str, Plain]:
        """Keep of an older entry what does not say how the server is reached."""
        reach = {"type", "transport", "command", "args", "env", self.url, self.headers}
        kept = {key: value for key, value in old.items() if key not in reach}
        table = "env" if "command" in entry else self.headers
        inside = {**_others(old.get(table)), **_table(entry.get(table))}
        return {**entry, **({table: inside} if inside else {}), **kept}

    def secret(self, entry: Mapping[str, Any]) -> str:
        """Find the key that an entry signs in with."""
        value = _table(entry.get(self.headers)).get(_AUTHORIZATION)
        return value.removeprefix(_BEARER) if isinstance(value, str) else ""


def _table(value: object) -> dict[str, Plain]:
    return cast("dict[str, Plain]", value) if isinstance(value, dict) else {}


def _others(value: object) -> dict[str, Plain]:
    """What is not ours of the variables or headers of an entry."""
    return {name: held for name, held in _table(value).items() if name not in _OURS}


FORMS: Final = (
    Form(word="cursor", client="Cursor"),
    Form(word="vscode", client="VS Code", table="servers", stdio="stdio", http="http"),
    Form(word="claude-desktop", client="Claude Desktop", url=""),
    Form(word="claude-code", client="Claude Code", stdio="stdio", http="http"),
    Form(word="windsurf", client="Windsurf", url="serverUrl"),
    Form(word="codex", client="Codex", table="mcp_servers", headers="http_headers"),
    Form(word="gemini", client="Gemini CLI", url="httpUrl"),
    Form(word="zed", client="Zed", table="context_servers"),
)


def find_form(word: str) -> Form:
    """Find a program by what a person calls it."""
    wanted = _letters(word)
    for form in FORMS:
        if wanted in {_letters(form.word), _letters(form.client)}:
            return form
    known = ", ".join(form.word for form in FORMS)
    raise NotFound(
        f"There is no client {word!r} that could be connected.", way_out=f"one of {known}"
    )


def _letters(word: str) -> str:
    return "".join(filter(str.isalnum, word.lower()))
