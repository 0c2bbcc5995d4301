"""Where other programs keep their MCP servers, and how those files are read."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.config.documents import read_document
from openfang.config.fields import Folders
from openfang.config.foreign import OFF, Around, Foreign, translated
from openfang.config.home import user_home
from openfang.config.jsonc import JsonProblem, read_json
from openfang.config.merge import frozen
from openfang.config.problems import Problem
from openfang.config.references import References
from openfang.config.validate import validated
from openfang.core.errors import ConfigError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_BYTES: Final = 32 * 1024 * 1024
_VSCODE_USER: Final = ".config/Code/User"
_VSCODE_MAC: Final = "Library/Application Support/Code/User"
_OF_USER: Final = (
    ("Claude Desktop", ".config/Claude/claude_desktop_config.json"),
    ("Claude Desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
    ("Claude Code", ".claude.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("Gemini CLI", ".gemini/settings.json"),
    ("Zed", ".config/zed/settings.json"),
    ("VS Code", f"{_VSCODE_USER}/mcp.json"),
    ("VS Code", f"{_VSCODE_USER}/settings.json"),
    ("VS Code", f"{_VSCODE_MAC}/mcp.json"),
    ("VS Code", f"{_VSCODE_MAC}/settings.json"),
    ("Windsurf", ".codeium/windsurf/mcp_config.json"),
    ("Codex", ".codex/config.toml"),
    ("AgentOS", ".agentos/mcp_servers.yaml"),
)
_OF_PROJECT: Final = (
    ("Claude Code", ".mcp.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("VS Code", ".vscode/mcp.json"),
    ("VS Code", ".vscode/settings.json"),
    ("Codex", ".codex/config.toml"),
    ("Gemini CLI", ".gemini/settings.json"),
    ("Zed", ".zed/settings.json"),
)
_FOLDERS: Final = {
    ".cursor": "Cursor",
    ".vscode": "VS Code",
    ".codex": "Codex",
    ".gemini": "Gemini CLI",
    ".zed": "Zed",
    "zed": "Zed",
}
_TABLES: Final = ("mcpServers", "servers", "mcp_servers", "context_servers")
_MAC: Final = "Library/"
# Variables that name another folder for what begins so.
_MOVED: Final = {
    "CODEX_HOME": ".codex/",
    "CLAUDE_CONFIG_DIR": ".claude.json",
    "XDG_CONFIG_HOME": ".config/",
}
# Those that read `$NAME` as a reference, too.
_BARE: Final = frozenset({"Gemini CLI"})
_YAML: Final = frozenset({".yaml", ".yml"})


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A file of another program. One of a `project` came with that folder, whoever wrote it."""

    client: str
    path: Path
    project: bool = False


def usual_files(environ: Mapping[str, str], folder: Path) -> list[ClientFile]:
    """List the files that are there: the user's, then those of the project in this folder."""
    user = user_home(environ)
    places = [
        *(ClientFile(client, user / path) for client, path in _OF_USER),
        *(ClientFile(client, _moved(environ, path)) for client, path in _OF_USER),
        *(ClientFile(client, folder / path, project=True) for client, path in _OF_PROJECT),
    ]
    found: dict[Path, ClientFile] = {}
    for file in places:
        if file.path.is_file():
            found.setdefault(file.path.resolve(), file)
    return list(found.values())


def written_file(client: str, environ: Mapping[str, str]) -> Path:
    """Say which file of the user a program reads on this system, there or not."""
    known = [path for name, path in _OF_USER if name == client]
    on_mac = sys.platform == "darwin"
    fitting = (path for path in known if path.startswith(_MAC) == on_mac)
    return _moved(environ, next(fitting, known[0]))


def project_file(client: str, folder: Path) -> Path | None:
    """Say which file of a project a program reads, if any."""
    return next((folder / path for name, path in _OF_PROJECT if name == client), None)


def _moved(environ: Mapping[str, str], path: str) -> Path:
    """Find a file of the user, wherever a variable has moved its folder."""
    for variable, start in _MOVED.items():
        if path.startswith(start) and (folder := environ.get(variable)):
            return Path(folder) / (path.removeprefix(start) or path)
    return user_home(environ) / path


def named_file(path: Path) -> ClientFile:
    """Tell by its name whose file this is."""
    known = {Path(place).name: client for client, place in (*_OF_PROJECT, *_OF_USER)}
    client = _FOLDERS.get(path.parent.name) or known.get(path.name)
    return ClientFile(client or path.name, path)


def read_client(
    file: ClientFile, environ: Mapping[str, str], *, named: bool = True
) -> list[Foreign]:
    """Read all servers of a file; one that cannot be read is a ConfigError.

    So is one that holds none, if a person has named it.
    """
    if file.path.suffix in _YAML:
        return _agentos(file, environ)
    data = _toml(file) if file.path.suffix == ".toml" else _json(file)
    found = [
        translated(name, fields, around(file, environ, folder))
        for folder, table in _tables(data, _project(file.path))
        for name, fields in _entries(table)
    ]
    if named and not found and not any(True for _ in _tables(data, file.path)):
        raise _wrong(file, f"expected {', '.join(_TABLES)} or mcp.servers")
    return found


def _entries(table: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, fields in table.items():
        yield name, cast("dict[str, Any]", fields) if isinstance(fields, dict) else {}


def _tables(data: Mapping[str, Any], folder: Path) -> Iterator[tuple[Path, dict[str, object]]]:
    """Find every table of servers, each with the folder that its paths count from."""
    mcp: object = data.get("mcp")
    nested = cast("dict[str, object]", mcp).get("servers") if isinstance(mcp, dict) else None
    named = (data.get(key) for key in _TABLES)
    for table in (*named, nested):
        if isinstance(table, dict):
            yield folder, cast("dict[str, object]", table)
    projects: object = data.get("projects")
    if isinstance(projects, dict):
        for place, project in cast("dict[str, object]", projects).items():
            own = cast("dict[str, object]", project) if isinstance(project, dict) else {}
            if isinstance(servers := own.get("mcpServers"), dict) and servers:
                yield Path(place), cast("dict[str, object]", servers)


def _project(path: Path) -> Path:
    folder = path.absolute().parent
    return folder.parent if folder.name in _FOLDERS and folder.name[0] == "." else folder


def around(file: ClientFile, environ: Mapping[str, str], folder: Path | None = None) -> Around:
    """Say where an entry of a file stands; its paths count from the file's project, or `folder`."""
    folder = folder or _project(file.path)
    user = str(user_home(environ))
    folders = {
        "workspaceFolder": str(folder),
        "workspaceFolderBasename": folder.name,
        "userHome": user,
        "pathSeparator": "/",
        "/": "/",
    }
    bare = file.client in _BARE
    references = References(variables=environ, folders=folders, bare=bare)
    return Around(client=file.client, file=file.path, folder=folder, references=references)


def _text(file: ClientFile) -> bytes:
    try:
        with file.path.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise _wrong(file, f"cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise _wrong(file, f"it has more than {MAX_BYTES} bytes")
    return content.removeprefix(b"\xef\xbb\xbf")


def _json(file: ClientFile) -> dict[str, Any]:
    content = _text(file)
    try:
        data: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        data = _forgiven(file, content)
    if not isinstance(data, dict):
        raise _wrong(file, "expected a table in braces")
    return cast("dict[str, Any]", data)


def _forgiven(file: ClientFile, content: bytes) -> object:
    """Read JSON as editors do: with comments, and commas too many."""
    try:
        return read_json(content.decode(), trailing=True)[0]
    except JsonProblem as problem:
        raise _wrong(file, f"not valid JSON: {problem}", problem.line) from None
    except UnicodeDecodeError:
        raise _wrong(file, "expected UTF-8 text, got other bytes") from None


def _toml(file: ClientFile) -> dict[str, Any]:
    try:
        data = tomllib.loads(_text(file).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(file, f"not valid TOML: {error}") from None
    if isinstance(data.get("mcp_servers"), list):
        raise _wrong(file, "it is a file like our own: name it in `include`")
    return data


def _agentos(file: ClientFile, environ: Mapping[str, str]) -> list[Foreign]:
    from openfang.config.agentos import AgentosFile, to_server  # noqa: PLC0415 - most have none

    document = read_document(file.path, str(file.path))
    if isinstance(document, Problem):
        raise _problems([document])
    folders = Folders(home=file.path.parent, user=user_home(environ))
    found = validated(AgentosFile, frozen(document.data), document.place, folders, "id")
    if isinstance(found, list):
        raise _problems(found)
    servers = (to_server(entry, file.path.absolute().parent) for entry in found.mcp_servers)
    return [
        Foreign(
            name=server.name,
            client=file.client,
            file=file.path,
            entry=_own(server.model_dump(exclude_defaults=True)),
            notes=() if server.enabled else (OFF,),
        )
        for server in servers
    ]


def _own(data: dict[str, Any]) -> dict[str, Any]:
    """Give an entry of ours as plain values, its secrets included."""
    return {key: _plain(value) for key, value in data.items() if key not in {"name", "enabled"}}


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of an entry
    match value:
        case dict():
            return {key: _plain(inner) for key, inner in cast("dict[str, Any]", value).items()}
        case list() | tuple():
            return [_plain(inner) for inner in cast("list[Any]", value)]
        case _:
            return value.get_secret_value() if hasattr(value, "get_secret_value") else value


def _problems(problems: Iterable[Problem]) -> ConfigError:
    return ConfigError("\n".join(str(problem) for problem in problems), way_out="mend the file")


def _wrong(file: ClientFile, message: str, line: int = 0) -> ConfigError:
    place = f"{file.path}:{line}" if line else str(file.path)
    return ConfigError(f"{place}: {message}", way_out="name the file of another program's servers")
