"""`file_read`, `file_write`, `file_list`: files in the caller's own workspace, and nowhere else."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from openfang.core.labels import Labels
from openfang.core.results import Result, text_result
from openfang.core.tools import Effect, Risk, Sink
from openfang.core.values import dataclass
from openfang.host.files import FileEntry, FileRefused
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema
from openfang.sources.builtin.workspaces import PATH, Workspaces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from openfang.core.calls import Admitted
    from openfang.sources.builtin.carried import Carried

_MAX_ENTRIES = 10_000
_MAX_BYTES = "tools.files.max_bytes"
_READ = builtin_tool(
    "file_read",
    "Read a file of your workspace: text as text, anything else as base64.",
    object_schema(["path"], path=PATH),
    risk=Risk.LOW,
    tags=frozenset({"fs.read"}),
    labels=Labels.LOCAL_FILE,
    idempotent=True,
)
_WRITE = builtin_tool(
    "file_write",
    "Write a whole file in your workspace, creating folders as needed.",
    object_schema(
        ["path", "content"],
        path=PATH,
        content={"type": "string", "description": "The new content."},
        encoding={
            "enum": ["text", "base64"],
            "default": "text",
            "description": "How `content` is written down.",
        },
    ),
    risk=Risk.MEDIUM,
    tags=frozenset({"fs.write"}),
    sink=Sink(effect=Effect.LOCAL_WRITE, targets=("path",)),
    idempotent=True,
)
_LIST = builtin_tool(
    "file_list",
    "List the names in a folder of your workspace; folders end with a slash.",
    object_schema(path={**PATH, "default": "."}),
    risk=Risk.LOW,
    tags=frozenset({"fs.read"}),
    labels=Labels.LOCAL_FILE,
    idempotent=True,
)


def file_tools(
    workspace: Callable[[str], Path], max_bytes: int, carried: Carried
) -> Sequence[Builtin]:
    """The family of files; `workspace` finds the folder of a caller's space."""
    spaces = Workspaces(workspace)
    family = _Files(spaces, max_bytes, carried)
    does = ((_READ, family.read), (_WRITE, family.write), (_LIST, family.list))
    return [Builtin(tool, run, spaces.grant) for tool, run in does]


@dataclass(frozen=True, slots=True)
class _Files:
    spaces: Workspaces
    max_bytes: int
    carried: Carried

    async def read(self, admitted: Admitted) -> Result:
        path = admitted.call.arguments["path"]
        data = await to_thread.run_sync(self._read, admitted, path)
        labels = await self.carried.by(self._root(admitted), path)
        try:
            return text_result(data.decode(), labels=labels)
        except UnicodeDecodeError:
            return replace(_binary(path, data), labels=labels)

    def _root(self, admitted: Admitted) -> Path:
        return self.spaces.find(admitted.call.caller.space)

    def _read(self, admitted: Admitted, path: str) -> bytes:
        with self.spaces.open(admitted.call.caller) as folder:
            return folder.read(path, limit=self.max_bytes, setting=_MAX_BYTES)

    async def write(self, admitted: Admitted) -> Result:
        path = admitted.call.arguments["path"]
        data = _decoded(admitted.call.arguments)
        if len(data) > self.max_bytes:
            raise FileRefused(
                f"{path} would be {len(data)} bytes; at most {self.max_bytes} are written.",
                way_out=_MAX_BYTES,
            )
        root = self._root(admitted)
        await self.carried.written(root, path, admitted.labels)
        await to_thread.run_sync(self._write, admitted, path, data)
        await self.carried.replaced(root, path, admitted.labels)
        return text_result(f"Wrote {len(data)} bytes to {path}.")

    def _write(self, admitted: Admitted, path: str, data: bytes) -> None:
        with self.spaces.open(admitted.call.caller) as folder:
            folder.write(path, data)

    async def list(self, admitted: Admitted) -> Result:
        path = admitted.call.arguments.get("path", ".")
        found = await to_thread.run_sync(self._list, admitted, path)
        caller = admitted.call.caller
        entries = [one for one in found if not self.spaces.closed(caller, f"{path}/{one.name}")]
        lines = [entry.name + ("/" if entry.kind == "folder" else "") for entry in entries]
        text = "\n".join(lines) or "The folder is empty."
        return text_result(text, structured={"entries": [_fields(e) for e in entries]})

    def _list(self, admitted: Admitted, path: str) -> Sequence[FileEntry]:
        with self.spaces.open(admitted.call.caller) as folder:
            return folder.list(path, limit=_MAX_ENTRIES)


def _decoded(arguments: Any) -> bytes:  # noqa: ANN401 - checked against the schema
    content: str = arguments["content"]
    if arguments.get("encoding") != "base64":
        return content.encode()
    try:
        return base64.b64decode(content, validate=True)
    except ValueError:
        raise FileRefused("`content` is not base64.", way_out='encoding = "text"') from None


def _binary(path: str, data: bytes) -> Result:
    blob = base64.b64encode(data).decode()
    resource = {"uri": f"file:{path}", "mimeType": "application/octet-stream", "blob": blob}
    note = {"type": "text", "text": f"{path} is not text: {len(data)} bytes follow as base64."}
    return Result(content=(note, {"type": "resource", "resource": resource}))


def _fields(entry: FileEntry) -> dict[str, Any]:
    return {"name": entry.name, "kind": entry.kind, "size": entry.size}
