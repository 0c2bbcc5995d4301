"""From the `manifest.json` of a folder to an `ExtensionSpec`; every problem of it at once.

What depends on the world (a program, a package, a variable) is not looked at here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.config import schema
from openfang.config.builtins import canonical, mistaken
from openfang.config.documents import Document, read_document
from openfang.config.extension_models import (
    ExtensionManifest,
    Limits,
    PermissionsSection,
    RuntimeSection,
)
from openfang.config.extensions import NO_SETTINGS
from openfang.config.fields import Folders
from openfang.config.merge import frozen
from openfang.config.problems import Problem, shown
from openfang.config.validate import validated
from openfang.core.calls import Grants
from openfang.core.errors import ConfigError
from openfang.core.extensions import Capability, ExtensionSpec, Permissions, Runtime
from openfang.core.tools import Sink
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openfang.config.extension_models import CapabilitySection, PermissionsOf
    from openfang.config.extensions import ExtensionSettings

FILE: Final = "manifest.json"
_ENTRIES: Final = {"python": "main.py", "node": "main.js"}
_NO_FOLDERS: Final = Folders(home=Path("/"), user=Path("/"))
# AgentOS's words, and what stands for them here. What runs has its own folder and workspace anyway.
_WORDS: Final[Mapping[str, PermissionsSection]] = {
    "read_status": PermissionsSection(),
    "builtin.exec": PermissionsSection(),
    "fs_read": PermissionsSection(tools=("builtin:file_read", "builtin:file_list")),
    "fs_write": PermissionsSection(tools=("builtin:file_write",)),
    "network_http": PermissionsSection(network=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A manifest that is right, and all that it says, as it was written."""

    manifest: ExtensionManifest
    data: Mapping[str, Any]

    def spec(
        self,
        *,
        folder: Path,
        workspace: Path,
        digest: str = "",
        settings: ExtensionSettings = NO_SETTINGS,
        config: Mapping[str, Any] | None = None,
    ) -> ExtensionSpec:
        """Say what it is, with what the operator says of it; `config` is expanded already."""
        manifest = self.manifest
        return ExtensionSpec(
            id=manifest.id,
            version=manifest.version,
            title=manifest.name,
            description=manifest.description,
            folder=folder,
            workspace=workspace,
            digest=digest,
            runtime=_runtime(manifest),
            capabilities=tuple(map(_capability, manifest.capabilities)),
            permissions=_permissions(manifest, settings),
            config=config or {},
            trust=settings.trust,
            sandbox=settings.sandbox,
            timeout=settings.timeout_secs,
            at_once=settings.max_concurrency,
            idle=settings.idle_secs,
        )


def read_manifest(folder: Path, *, user: Path | None = None) -> Read:
    """Read the manifest of a folder, or say all that is wrong with it."""
    match read_document(folder / FILE, FILE):
        case Problem() as problem:
            raise _wrong([problem])
        case document:
            pass
    folders = _NO_FOLDERS if user is None else Folders(home=user, user=user)
    match validated(ExtensionManifest, frozen(document.data), document.place, folders):
        case list() as problems:
            raise _wrong(problems)
        case manifest:
            pass
    if problems := list(_misfits(document, manifest, folder)):
        raise _wrong(problems)
    return Read(manifest=manifest, data=document.data)


def _wrong(problems: Sequence[Problem]) -> ConfigError:
    told = sorted(problems, key=lambda one: one.place.line)
    return ConfigError("\n".join(map(str, told)), way_out="see docs/extensions.md")


def json_schema() -> dict[str, Any]:
    """Describe the file as JSON Schema, draft 2020-12."""
    return schema.json_schema(ExtensionManifest, "OpenFang extension manifest")


def settings() -> list[schema.Setting]:
    """List every key of the file."""
    return schema.settings(ExtensionManifest)


def _misfits(document: Document, manifest: ExtensionManifest, folder: Path) -> Iterator[Problem]:
    """Check what no part can tell alone: the whole, the files of the folder, tools that exist."""
    checks = (*_whole(manifest), *_missing_files(manifest, folder), *_unknown_tools(manifest))
    for path, what in checks:
        yield Problem(document.place(path), ".".join(path), f"expected {what}")


def _whole(manifest: ExtensionManifest) -> Iterator[tuple[tuple[str, ...], str]]:
    if not {"linux", "all"} & {*manifest.platforms}:
        yield ("platforms",), '"linux" or "all" among them'
    names = [one.name for one in manifest.capabilities]
    for double in sorted({name for name in names if names.count(name) > 1}):
        yield ("capabilities",), f"each of them once, and {shown(double)} is there twice"
    if manifest.runtime == "mcp":
        yield ("runtime",), 'a table with "kind": "mcp" and its "command"'
    if not names and _runtime_of(manifest).kind != "mcp":
        yield ("capabilities",), "at least one"
    for name, one in manifest.config.items():
        if one.required and one.default is not None:
            yield ("config", name, "default"), "none where it is required"


def _missing_files(
    manifest: ExtensionManifest, folder: Path
) -> Iterator[tuple[tuple[str, ...], str]]:
    runtime = _runtime_of(manifest)
    if runtime.kind == "mcp":
        key, files = ("runtime", "command"), [one for one in runtime.command if one[:2] == "./"]
    else:
        key = ("entry",) if manifest.entry else ("runtime",)
        files = [_entry(manifest, runtime)]
    for file in files:
        if not (folder / file).is_file():
            yield key, f"a file of the folder, got {shown(file)}"


def _unknown_tools(manifest: ExtensionManifest) -> Iterator[tuple[tuple[str, ...], str]]:
    for what in filter(None, map(mistaken, _said(manifest).tools)):
        yield ("permissions", "tools"), what.removeprefix("expected ")


def _runtime_of(manifest: ExtensionManifest) -> RuntimeSection:
    if isinstance(manifest.runtime, RuntimeSection):
        return manifest.runtime
    return RuntimeSection.model_construct(
        kind=manifest.runtime, entry=None, command=(), python=None, requirements=(), limits=Limits()
    )


def _entry(manifest: ExtensionManifest, runtime: RuntimeSection) -> str:
    return manifest.entry or runtime.entry or _ENTRIES[runtime.kind]


def _runtime(manifest: ExtensionManifest) -> Runtime:
    said = _runtime_of(manifest)
    entry = said.command if said.kind == "mcp" else (_entry(manifest, said),)
    return Runtime(
        kind=said.kind,
        entry=entry,
        python=said.python or manifest.python.version,
        requirements=(*said.requirements, *manifest.python.dependencies),
        memory_bytes=said.limits.memory_bytes,
        cpu_seconds=said.limits.cpu_seconds,
        disk_bytes=said.limits.disk_bytes,
    )


def _capability(said: CapabilitySection) -> Capability:
    tags = said.side_effect_tags
    return Capability(
        name=said.name,
        shown_as=said.tool_name or "",
        title=said.title,
        description=said.description,
        input_schema=_thawed(said.input_schema) or {"type": "object"},
        output_schema=_thawed(said.output_schema),
        annotations=_thawed(said.annotations),
        risk=said.risk,
        tags=None if tags is None else frozenset(tags),
        sink=None if said.effect is None else Sink(effect=said.effect, targets=said.targets),
        timeout=said.timeout_secs,
    )


def _thawed(value: Any) -> Any:  # noqa: ANN401 - any JSON
    return orjson.loads(orjson.dumps(value))


def _said(manifest: ExtensionManifest) -> PermissionsSection:
    """Join both keys, and both forms of each."""
    parts = [*_sections(manifest.permissions), *_sections(manifest.permissions_required)]

    def joined(key: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(one for part in parts for one in getattr(part, key)))

    lists = ("tools", "memory_read", "memory_write", "fs_read", "fs_write", "env")
    network = any(part.network for part in parts)
    update = {**{key: joined(key) for key in lists}, "network": network}
    return PermissionsSection().model_copy(update=update)


def _sections(said: PermissionsOf) -> list[PermissionsSection]:
    return [said] if isinstance(said, PermissionsSection) else [_WORDS[word] for word in said]


def permissions_said(manifest: ExtensionManifest) -> dict[str, Any]:
    """Give what it asks for, as JSON: that is compared from one version to the next."""
    return _thawed(_said(manifest).model_dump())


def _permissions(manifest: ExtensionManifest, settings: ExtensionSettings) -> Permissions:
    said = _said(manifest)
    return Permissions(
        grants=Grants(
            tools=tuple(map(canonical, said.tools)),
            memory_read=said.memory_read,
            memory_write=said.memory_write,
        ),
        network=said.network and settings.network,
        read=tuple(map(Path, (*said.fs_read, *settings.fs_read))),
        write=tuple(map(Path, (*said.fs_write, *settings.fs_write))),
        variables=said.env,
    )
