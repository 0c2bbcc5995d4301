"""Extensions, as the door knows them: read from `manifest.json`, run by the house of extensions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from anyio import to_thread
from pydantic import SecretStr

from openfang.app.installs.reviews import Described
from openfang.app.servers.translate import rules_of
from openfang.app.variables import expanded
from openfang.config.extension_manifests import FILE, permissions_said, read_manifest
from openfang.config.extensions import NO_SETTINGS
from openfang.core.errors import ConfigError, NotFound, SourceFailed
from openfang.core.values import dataclass
from openfang.host.backends import Bare, SandboxMissing, available, choose
from openfang.host.sandbox import Bubblewrap
from openfang.sources.extensions.adapter import tools_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.extensions.house import Extensions
    from openfang.app.parts import Parts
    from openfang.config.extension_manifests import Read
    from openfang.config.extensions import ExtensionSettings
    from openfang.core.extensions import ExtensionSpec, Sandbox
    from openfang.core.installs import InstallKind
    from openfang.storage.installs import Install

_NOWHERE: Final = Path("/nonexistent")


@dataclass(frozen=True, slots=True)
class ExtensionSort:
    """Programs that bring tools."""

    kind: ClassVar[InstallKind] = "extension"
    parts: Parts
    extensions: Extensions

    def read(self, folder: Path) -> Described:
        """Read its manifest, and say what it would be allowed to do."""
        read = read_manifest(folder, user=Path.home())
        manifest, settings = read.manifest, self._settings(read.manifest.id)
        spec = read.spec(folder=folder, workspace=_NOWHERE, settings=settings)
        return Described(
            id=manifest.id,
            version=manifest.version,
            written=FILE,
            title=manifest.name,
            description=manifest.description,
            author=manifest.author,
            license=manifest.license,
            runtime=runtime_words(spec),
            definition=read.data,
            tools=tools_of(spec, rules_of(self.parts.config)),
            permissions=permissions_said(manifest),
            words=tuple(permission_words(spec)),
            sandbox=sandbox_words(spec.sandbox),
        )

    def _settings(self, id_: str) -> ExtensionSettings:
        return self.parts.config.extensions.get(id_, NO_SETTINGS)

    async def put(self, install: Install, folder: Path) -> None:
        """Offer it as its manifest and the configuration say."""
        await self.extensions.put(await to_thread.run_sync(self._spec, install, folder))

    def _spec(self, install: Install, folder: Path) -> ExtensionSpec:
        read, settings = read_manifest(folder, user=Path.home()), self._settings(install.id)
        workspace = self.parts.home.workspace(f"ext-{install.id}")
        return read.spec(
            folder=folder,
            workspace=workspace,
            digest=install.accepted,
            settings=settings,
            config=self._config(read, settings),
        )

    def _config(self, read: Read, settings: ExtensionSettings) -> dict[str, Any]:
        """Give each value that is declared: the operator's, else its default."""
        declared = read.manifest.config
        id_ = read.manifest.id
        unknown = sorted({*settings.config} - {*declared})
        if unknown:
            raise ConfigError(
                f"extensions.{id_}.config.{unknown[0]} is not declared in its manifest.",
                way_out=f"declared are: {', '.join(declared) or 'none'}",
            )
        values = {name: one.default for name, one in declared.items() if one.default is not None}
        values |= self._values(id_, settings.config)
        missing = [name for name, one in declared.items() if one.required and name not in values]
        if missing:
            raise ConfigError(
                f"{id_} needs {missing[0]}: {declared[missing[0]].description}".rstrip(": "),
                way_out=f'[extensions."{id_}".config] {missing[0]} = ...',
            )
        return values

    def _values(self, id_: str, written: Mapping[str, SecretStr | float]) -> dict[str, str | float]:
        texts = {
            name: value.get_secret_value()
            for name, value in written.items()
            if isinstance(value, SecretStr)
        }
        plain = {name: one for name, one in written.items() if not isinstance(one, SecretStr)}
        return {**plain, **expanded(self.parts, f"extensions.{id_}", texts)}

    async def drop(self, id_: str) -> None:
        """Take it away."""
        await self.extensions.drop(id_)

    async def settled(self, id_: str) -> None:
        """Wait for what a server has to say first."""
        await self.extensions.settled(id_)

    def state(self, id_: str) -> Mapping[str, Any]:
        """Say how its process is."""
        try:
            return asdict(self.extensions.state(id_))
        except NotFound:
            return {"how": "idle"}


def runtime_words(spec: ExtensionSpec) -> str:
    """Say what runs it."""
    runtime = spec.runtime
    said = f"{runtime.kind} {runtime.python or ''}".strip() + f": {' '.join(runtime.entry)}"
    if runtime.requirements:
        said += f", with {', '.join(runtime.requirements)}"
    return said


def sandbox_words(mode: Sandbox) -> str:
    """Say what a program will run in on this machine. It blocks: what there is, is tried."""
    try:
        chosen = choose(mode, available())
    except (SandboxMissing, SourceFailed) as error:
        return f"none, so it will not be started: {error}"
    if isinstance(chosen, Bare):
        return f"none: {chosen.reason}"
    return (
        "bubblewrap and seccomp" if isinstance(chosen, Bubblewrap) else "Landlock alone: degraded"
    )


def permission_words(spec: ExtensionSpec) -> list[str]:
    """Say in plain words what it may reach."""
    may = spec.permissions
    grants = may.grants
    said = [
        "read its own folder, and write in a workspace of its own",
        _listed("call these tools, where its caller may", grants.tools),
        _listed("read memory", grants.memory_read),
        _listed("write memory", grants.memory_write),
        _listed("read these paths", may.read),
        _listed("write these paths", may.write),
        _listed("know these variables of the node", may.variables),
        "reach the network, through the guarded egress" if may.network else "",
    ]
    cannot = [] if may.network else ["not reach the network"]
    return [*filter(None, said), *cannot]


def _listed(words: str, values: tuple[object, ...]) -> str:
    return f"{words}: {', '.join(map(str, values))}" if values else ""
