"""One server of another program's file, said in our words: what fits, what is left out, and why."""

from __future__ import annotations

import re
import shlex
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.config.references import References, Refused
from openfang.core.values import dataclass
from openfang.safety.paths import has_parent_reference

if TYPE_CHECKING:
    from collections.abc import Mapping

_HTTP: Final = {
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
OFF: Final = "switched off there"
_URLS: Final = ("url", "serverUrl", "httpUrl")
_APPROVED: Final = ("autoApprove", "alwaysAllow")
_ALLOWED: Final = ("enabled_tools", "includeTools")
_READ: Final = frozenset(
    {
        *("type", "transport", "command", "args", "env", "cwd", "headers", "http_headers"),
        *("env_http_headers", "bearer_token_env_var", "env_vars", "tool_timeout_sec"),
        *("enabled", "disabled", *_ALLOWED, *_URLS, *_APPROVED),
    }
)
_SILENT: Final = frozenset({"name", "id", "description", "version", "gallery", "icon", "source"})
_BAD = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME: Final = 64
_RUNNERS: Final = frozenset({"npx", "uvx", "uv", "pipx", "bunx", "bun", "pnpm", "yarn", "env"})
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "cmd"})
_BEFORE = re.compile(r"-|[A-Za-z_]\w*=(?!=)|(?:run|tool|exec|dlx|x)\Z")
_US: Final = "openfang"


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Where an entry stands: the program, its file, and the folder that paths count from."""

    client: str
    file: Path
    folder: Path
    references: References


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """One entry. `refused` says why it cannot be taken; `notes` say what is otherwise than there.

    The entry may hold secrets, so it is not shown.
    """

    name: str
    client: str
    file: Path
    entry: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    notes: tuple[str, ...] = ()
    refused: str = ""

    @property
    def starts_us(self) -> bool:
        """Whether it starts this very program."""
        transport: Mapping[str, Any] = self.entry.get("transport", {})
        return is_us([str(transport.get("command", "")), *transport.get("args", ())])


def translated(name: str, fields: Mapping[str, Any], around: Around) -> Foreign:
    """Say an entry in our words, or why that cannot be done."""
    reading = _Reading(fields, around)
    try:
        entry = reading.entry()
    except Refused as refused:
        return Foreign(name=name, client=around.client, file=around.file, refused=str(refused))
    notes = tuple(dict.fromkeys((*reading.notes, *around.references.taken())))
    return Foreign(name=name, client=around.client, file=around.file, entry=entry, notes=notes)


def valid_name(text: str) -> str:
    """Make a name of letters, digits, - and _ of any text."""
    return _BAD.sub("-", text).strip("-_")[:_LONGEST_NAME] or "server"


def is_us(command: list[str]) -> bool:
    """Whether a command starts `openfang`, also through what runs packages, modules or a line."""
    program, *rest = command
    name = _program(program)
    if name == _US:
        return True
    if name in _SHELLS:
        return any(is_us(word.split()) for word in rest if word.strip())
    runs = name in _RUNNERS or name.startswith("python")
    started = (word for word in rest if not _BEFORE.match(word))
    return runs and _program(next(started, "")) == _US


def _program(word: str) -> str:
    """The name that a word of a command has without folders, versions and extras."""
    name = word.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()
    return (
        re.split(r"[@\[=<>~]", name, maxsplit=1)[0].removesuffix(".exe").removesuffix(".cmd")
        or name
    )


class _Reading:
    def __init__(self, fields: Mapping[str, Any], around: Around) -> None:
        self.fields = _flat(fields)
        self.around = around
        self.notes: list[str] = []

    def entry(self) -> dict[str, Any]:
        """Give the entry, without its name."""
        self._note_rest()
        entry: dict[str, Any] = {"transport": self._transport()}
        if env := self._env():
            entry["env"] = env
        if isinstance(seconds := self.fields.get("tool_timeout_sec"), int | float) and seconds > 0:
            entry["timeout_secs"] = seconds
        if allowed := [tool for key in _ALLOWED for tool in self._texts(key)]:
            entry["allow_tools"] = allowed
        return entry

    def _transport(self) -> dict[str, Any]:
        kind: object = self.fields.get("type", self.fields.get("transport"))
        kind = kind if kind is None or isinstance(kind, str) else str(kind)
        url = next((self.fields[key] for key in _URLS if key in self.fields), None)
        if "command" in self.fields and kind in {None, "stdio"}:
            return self._stdio()
        if isinstance(url, str):
            return self._http(kind, url)
        if kind not in {None, "stdio", *_HTTP}:
            raise Refused(f"its transport {kind!r} is not known here")
        raise Refused("it has neither a command nor an address")

    def _stdio(self) -> dict[str, Any]:
        command: object = self.fields["command"]
        if not isinstance(command, str) or not command:
            raise Refused("its command is no text")
        words = [self._word(word) for word in (*self._program(command), *self._texts("args"))]
        if words and words[0].lower() in {"cmd", "cmd.exe"} and words[1:2] in (["/c"], ["/C"]):
            words = words[2:]
        if not words:
            raise Refused("its command is empty")
        transport: dict[str, Any] = {"type": "stdio", "command": words[0]}
        return {**transport, "args": words[1:]} if words[1:] else transport

    def _program(self, command: str) -> list[str]:
        """Take a line apart that stands for the program, unless a program is called so."""
        if " " not in command or _exists(Path(command)):
            return [command]
        try:
            words = shlex.split(command)
        except ValueError:
            raise Refused("its command is a line that cannot be read") from None
        self.notes.append("its command is taken apart at the spaces")
        return words

    def _word(self, word: str) -> str:
        """Resolve a word of the command: its references, and a path that exists."""
        return self._path(self.around.references.value(word))

    def _path(self, word: str) -> str:
        path = Path(word)
        if not word.startswith("-") and ("/" in word or path.suffix) and not path.is_absolute():
            folder = self.around.folder / str(self.fields.get("cwd") or ".")
            if _exists(folder / path):
                return str((folder / path).resolve())
        if has_parent_reference(word):
            if path.is_absolute() and _exists(path):
                return str(path.resolve())
            raise Refused("a path of its command has `..` in it, and is not there")
        return word

    def _http(self, kind: object, url: str) -> dict[str, Any]:
        word = _HTTP.get(str(kind).lower()) if kind is not None else "http"
        if word is None:
            raise Refused(f"its transport {kind!r} is not known here")
        address = self.around.references.value(url)
        if not re.match(r"https?://[^\s/]\S*\Z", address):
            raise Refused("its address is not an http:// or https:// one")
        transport: dict[str, Any] = {"type": word, "url": address}
        return {**transport, "headers": headers} if (headers := self._headers()) else transport

    def _headers(self) -> dict[str, str]:
        headers = {**self._table("headers"), **self._table("http_headers")}
        headers |= {name: self._named(of) for name, of in self._table("env_http_headers").items()}
        if isinstance(token := self.fields.get("bearer_token_env_var"), str):
            headers["Authorization"] = f"Bearer {self._named(token)}"
        return headers

    def _named(self, variable: str) -> str:
        """Refer to a variable that is given by its name alone."""
        return self.around.references.kept(f"${{{variable}}}")

    def _env(self) -> dict[str, str] | list[str]:
        """The variables as a table of values, or as names where only names are given."""
        values, names = self._table("env"), self._texts("env_vars")
        passed_on = {name: self._named(name) for name in names}
        return {**passed_on, **values} if values else names

    def _table(self, key: str) -> dict[str, str]:
        table: object = self.fields.get(key) or {}
        if not isinstance(table, dict):
            raise Refused(f"its {key} is no table")
        values = cast("dict[str, object]", table).items()
        return {name: self._text(key, value) for name, value in values if value is not None}

    def _text(self, key: str, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise Refused(f"its {key} holds something that is no text")
        return self.around.references.kept(str(value))

    def _texts(self, key: str) -> list[str]:
        texts: object = self.fields.get(key) or []
        if not isinstance(texts, list):
            raise Refused(f"its {key} is no list")
        return [str(text) for text in cast("list[object]", texts)]

    def _note_rest(self) -> None:
        if self.fields.get("disabled") is True or self.fields.get("enabled") is False:
            self.notes.append(OFF)
        if any(self.fields.get(key) for key in _APPROVED):
            self.notes.append("what is approved there is not approved here")
        if self.fields.get("cwd"):
            self.notes.append("left out: cwd")
        for key in sorted(set(self.fields) - _READ - _SILENT):
            self.notes.append(f"left out: {key}")


def _flat(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read a command that is a table of its own, as Zed once wrote it, as all others do."""
    command: object = fields.get("command")
    if not isinstance(command, dict):
        return fields
    table = dict(cast("dict[str, Any]", command))
    return {**fields, "command": table.pop("path", None), **table}


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a word that is too long to be a path is no path
        return False
