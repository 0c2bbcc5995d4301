"""Servers as the configuration writes them, in the words of the sources."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openfang.app.servers.pinning import may_change
from openfang.app.servers.sealing import check_references
from openfang.config.servers import HttpTransport, StdioTransport
from openfang.core.tools import Trust
from openfang.registry.classify import Declared
from openfang.registry.rules import DEFAULT_RULES
from openfang.safety.environment import child_environment, expand
from openfang.sources.mcp.spec import Http, OAuth, Override, ServerSpec, Stdio

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

    from openfang.config.models import Config
    from openfang.config.servers import McpServer, OAuthSection, ToolOverride
    from openfang.registry.rules import Rules


def spec_of(server: McpServer, reached: Stdio | Http) -> ServerSpec:
    """Say what is known of a server that is reached so."""
    return ServerSpec(
        name=server.name,
        reached=reached,
        timeout=server.timeout_secs,
        trust=trust_of(server),
        risk=server.risk,
        allow_tools=server.allow_tools,
        denied_tags=frozenset(server.deny_side_effect_tags),
        overrides={name: _override(stated) for name, stated in server.tools.items()},
        lazy=server.lazy,
        at_once=server.max_concurrency,
        roots=server.roots,
        singleton=server.singleton,
    )


def reached_of(server: McpServer, variables: Mapping[str, str], home: Path) -> Stdio | Http:
    """Say how a server is reached; what is not set or not there is an error."""
    check_references(server, variables)
    match server.transport:
        case StdioTransport() as stdio:
            return _stdio(server, stdio, variables, home)
        case HttpTransport() as http:
            return http_of(server, http, variables, home)


def outline_of(server: McpServer, home: Path) -> Stdio | Http:
    """Say as much of how a server is reached as depends on nothing: enough to tell what it is."""
    match server.transport:
        case StdioTransport(command=command, args=args):
            return Stdio(argv=(command, *args), cwd=_folder(server, home))
        case HttpTransport(url=url):
            return Http(url=url)


def _folder(server: McpServer, home: Path) -> Path:
    return home / "servers" / server.name


def _stdio(
    server: McpServer, stdio: StdioTransport, variables: Mapping[str, str], home: Path
) -> Stdio:
    folder = _folder(server, home)
    own, tmp = folder / "home", folder / "tmp"
    return Stdio(
        argv=(stdio.command, *stdio.args),
        cwd=folder,
        environment=_environment(server, variables, str(own), str(tmp)),
        sandbox=server.sandbox,
        network=server.network,
        allow_private=server.allow_private,
        read=tuple(map(Path, server.fs_read)),
        write=tuple(map(Path, server.fs_write)),
        memory=server.max_memory_mb << 20,
        processes=server.max_processes,
    )


def _environment(
    server: McpServer, environ: Mapping[str, str], home: str, tmp: str
) -> dict[str, str]:
    """`PATH`, private folders and what is listed: names to pass on, or a table of values."""
    env = server.env
    if isinstance(env, tuple):
        return child_environment(environ, names=env, home=home, tmp=tmp)
    values = {name: value.get_secret_value() for name, value in env.items()}
    return child_environment(environ, values=values, home=home, tmp=tmp)


def http_of(
    server: McpServer, http: HttpTransport, variables: Mapping[str, str], home: Path
) -> Http:
    """Translate an address, and what is said of signing in there."""
    return Http(
        url=http.url,
        headers={
            name: expand(value.get_secret_value(), variables)
            for name, value in http.headers.items()
        },
        allow_private=server.allow_private,
        oauth=None if http.oauth is None else _oauth(http.oauth, variables, home),
    )


def _oauth(section: OAuthSection, variables: Mapping[str, str], home: Path) -> OAuth:
    def secret(value: SecretStr | None) -> str:
        return expand(value.get_secret_value(), variables) if value else ""

    key = secret(section.private_key)
    return OAuth(
        grant=section.grant,
        client_id=section.client_id or "",
        client_secret=secret(section.client_secret),
        client_metadata_url=section.client_metadata_url or "",
        private_key=key if not key or "-----BEGIN " in key else str(home / key),
        issuer=section.issuer or "",
        scopes=section.scopes,
        redirect_port=section.redirect_port,
    )


def trust_of(server: McpServer) -> Trust:
    """Low over the network and for packages that may change under our feet, unless stated."""
    if server.trust is not None:
        return Trust(server.trust)
    return Trust.LOW if _may_change(server) else Trust.MEDIUM


def _may_change(server: McpServer) -> bool:
    stdio = server.transport
    if not isinstance(stdio, StdioTransport):
        return True
    return may_change((stdio.command, *stdio.args))


def _override(stated: ToolOverride) -> Override:
    declared = Declared(
        risk=stated.risk,
        tags=None if stated.tags is None else frozenset(stated.tags),
        effect=stated.effect,
        targets=stated.targets,
        polls=stated.polls,
        requires_admin_token=stated.requires_admin_token,
    )
    enabled = True if stated.enabled is None else stated.enabled
    return Override(declared=declared, enabled=enabled, timeout=stated.timeout_secs)


def rules_of(config: Config) -> Rules:
    """The words that tell risk and effects, the operator's among them."""
    words = config.classify
    return DEFAULT_RULES.extended(
        critical=words.critical,
        high=words.high,
        medium=words.medium,
        low=words.low,
        tags=words.tags,
    )
