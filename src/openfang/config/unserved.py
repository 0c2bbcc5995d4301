"""What a file says and nobody acts on: keys for parts to come, and grants that match nothing.

None of it is a mistake, and all of it is worth knowing before one relies on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.agents.models.providers import DEFAULT, PLANNER, PRESETS
from openfang.config.manifest_models import Manifest
from openfang.config.manifest_parts import Autonomous
from openfang.core.ids import Kind
from openfang.core.triggers import CONDITION, conditions
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

_SERVED: Final = frozenset({DEFAULT, *PLANNER, *PRESETS})
UNSERVED: Final = frozenset(
    {
        *("priority", "published", "guide", "plugins"),
        *("capabilities.paths", "limits.agent_calls", "limits.plugin_timeout_secs"),
        "resources.max_network_bytes_per_hour",
        *("autonomous.max_iterations", "autonomous.max_restarts"),
        *("autonomous.heartbeat_interval_secs", "autonomous.heartbeat_channel"),
        *("safety.repetitive_fail_threshold", "safety.frustration_threshold"),
        *("safety.error_window_size", "safety.error_rate_threshold"),
        *("communication.expose_tools", "communication.events", "communication.timeout_secs"),
        *("communication.max_retries", "communication.grace_secs"),
    }
)
_IN_VAIN: Final = "it has no effect in this version"
_MCP: Final = f"{Kind.MCP.value}:"
_GLOB: Final = frozenset("*?[")
_TOOLS: Final = "capabilities.tools"
_CONDITIONS: Final = "schedule.proactive.conditions"


@dataclass(frozen=True, slots=True)
class Known:
    """What a node has that a manifest can name: its servers, providers, skills and extensions."""

    servers: Collection[str] = ()
    providers: Collection[str] = ()
    installed: Collection[str] = ()


def doubts(manifest: Manifest, folder: Path, known: Known) -> Iterator[tuple[str, str]]:
    """Say what of a manifest has no effect, by key."""
    autonomous = Autonomous() if manifest.autonomous else None
    usual = Manifest(name=manifest.name, autonomous=autonomous)
    for key in sorted(UNSERVED):
        if _value(manifest, key) != _value(usual, key):
            yield key, _IN_VAIN
    yield from _unplaced(manifest, known.providers)
    yield from _unmatched(manifest, known.servers)
    for name in manifest.skills:
        if name != "*" and name not in known.installed:
            yield "skills", f"no skill or extension {name} is installed"
    yield from _unbound(manifest)
    yield from _unmet(manifest)
    if missing := _missing(manifest, folder):
        yield "module", f"there is no file {missing}"


def _unplaced(manifest: Manifest, providers: Collection[str]) -> Iterator[tuple[str, str]]:
    """Find providers that nobody has said where to find."""
    fallbacks = (("fallback_models", one) for one in manifest.fallback_models)
    for key, model in (("model.provider", manifest.model), *fallbacks):
        known = model.base_url or model.provider in {*_SERVED, *providers}
        if not known and not _is_program(manifest):
            yield key, f"nobody says where {model.provider} is: [providers.{model.provider}]"


def _unmatched(manifest: Manifest, servers: Collection[str]) -> Iterator[tuple[str, str]]:
    for grant in manifest.capabilities.tools:
        server = grant.removeprefix(_MCP).partition(":")[0]
        if grant.startswith(_MCP) and not _GLOB & set(server) and server not in servers:
            yield _TOOLS, f'"{grant}" matches nothing: no MCP server {server} is configured'
    for server in manifest.mcp_servers:
        if server != "*" and server not in servers:
            yield "mcp_servers", f"no MCP server {server} is configured"


def _unbound(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """A closed path is closed to tools of files; a program opens what its workspace holds."""
    granted = manifest.granted()
    if granted.deny_paths and (granted.shell or _is_program(manifest)):
        which = "the agent's own program" if _is_program(manifest) else "what shell_exec starts"
        yield "capabilities.deny_paths", f"it does not bind {which}"


def _unmet(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """A condition is a type of events; nothing else is waited for."""
    way = manifest.schedule
    written = () if isinstance(way, str) or way.proactive is None else way.proactive.conditions
    for one in written:
        if not conditions((one,)):
            yield _CONDITIONS, f'"{one}" starts nothing; a condition is {CONDITION}TYPE'


def _missing(manifest: Manifest, folder: Path) -> str:
    if not _is_program(manifest):
        return ""
    file = manifest.module.split(":")[1]
    return "" if (folder / file).is_file() else file


def _is_program(manifest: Manifest) -> bool:
    return manifest.module.startswith("python:")


def _value(file: Manifest, key: str) -> Any:  # noqa: ANN401 - of any section
    value: Any = file
    for name in key.split("."):
        value = getattr(value, name, None)
    return value
