"""`openfang keys create|list|revoke`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Annotated, Any, cast

from cyclopts import Parameter

from openfang.cli.errors import Usage
from openfang.cli.options import Json, plain_name, seconds, tags
from openfang.cli.output import note, print_json, say, table
from openfang.cli.session import on_home
from openfang.cli.times import span
from openfang.core.calls import EVERYTHING, Grants, Mode, Role
from openfang.core.keys import EDGES, AdminToken, Key, opened
from openfang.core.values import dataclass
from openfang.core.wire import key_body

_MOST_CELLS = 1_000_000_000
_MOST_USD = 1_000_000
_HASH = re.compile(r"\A[0-9a-f]{64}\Z")
_ALL = ("*",)
_UNSAID = frozenset({"id", "name", "kind", "state", "created_at"})
Globs = tuple[str, ...]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is bound to a key."""

    admin: Annotated[
        bool, Parameter(help="It manages the node, and is granted everything: `--role admin`.")
    ] = False
    role: Annotated[
        Role,
        Parameter(help="auditor: reads the log; approver: answers questions; admin: manages."),
    ] = Role.USER
    edge: Annotated[
        tuple[str, ...],
        Parameter(help="Where it may come in: api, mcp, a2a, web, openai; else anywhere."),
    ] = ()
    toolset: Annotated[
        tuple[str, ...],
        Parameter(help="A toolset it is bound to; can be repeated. Else any."),
    ] = ()
    agent: Annotated[
        tuple[str, ...],
        Parameter(help="An agent it is bound to, and its tools; can be repeated. Else any."),
    ] = ()
    project: Annotated[
        tuple[str, ...], Parameter(help="A project it may use; can be repeated. Else `default`.")
    ] = ()
    mode: Annotated[Mode, Parameter(help="`planning` refuses side effects.")] = Mode.EXECUTION
    network: Annotated[Globs, Parameter(help="Hosts it may reach; can be repeated.")] = ()
    shell: Annotated[Globs, Parameter(help="Programs it may start; can be repeated.")] = ()
    memory_read: Annotated[Globs, Parameter(help="Memories it may recall; can be repeated.")] = ()
    memory_write: Annotated[Globs, Parameter(help="Memories it may store; can be repeated.")] = ()
    blacklist: Annotated[
        tuple[str, ...], Parameter(help="A side effect that is refused; can be repeated.")
    ] = ()
    spec: Annotated[str | None, Parameter(help="The frozen spec that it works by: a hash.")] = None
    limit: Annotated[
        int | None, Parameter(help="Its own rate, in cells a minute; a call costs 5.")
    ] = None
    budget_usd_per_day: Annotated[
        float | None, Parameter(help="What agents may spend on models for it in a day (UTC).")
    ] = None


NO_SCOPE = Scope()


def create(
    name: str,
    /,
    *,
    tools: Annotated[Globs, Parameter(help="Tools it may see; can be repeated. Else all.")] = (),
    ttl: Annotated[str | None, Parameter(help="How long it lives: 90s, 15m, 1h, 7d.")] = None,
    admin_token: Annotated[
        bool, Parameter(help="Make an admin token for gate 6 instead of a key.")
    ] = False,
    scope: Scope = NO_SCOPE,
    as_json: Json = False,
) -> None:
    """Make a key and print its secret, this once: `openfang keys create editor --edge mcp`.

    It is granted every tool unless `--tools`, `--toolset` or `--agent` say less.

    Args:
        name: What to call it.
    """
    plain_name(name, "key")
    lifetime, seen = seconds(ttl), _globs(tools, "--tools") or _ALL
    if admin_token:
        _create_token(AdminToken(id="", name=name, tools=seen), scope, lifetime, as_json=as_json)
        return
    wanted = _key(name, seen, scope)
    key, secret = on_home(lambda session: session.create_key(wanted, ttl=lifetime))
    _show_secret(key_body(key, time.time_ns()), secret, as_json=as_json)


def _create_token(
    wanted: AdminToken, scope: Scope, lifetime: float | None, *, as_json: bool
) -> None:
    if scope != NO_SCOPE:
        raise Usage(
            "An admin token has tools and a lifetime, and nothing else.",
            way_out="openfang keys create NAME --admin-token [--tools GLOB] [--ttl 1h]",
        )
    token, secret = on_home(lambda session: session.create_token(wanted, ttl=lifetime))
    _show_secret(key_body(token, time.time_ns()), secret, as_json=as_json)


def _key(name: str, tools: Globs, scope: Scope) -> Key:
    if scope.limit is not None and not 1 <= scope.limit <= _MOST_CELLS:
        raise Usage(
            f"--limit is {scope.limit}.", way_out=f"cells a minute, from 1 to {_MOST_CELLS}"
        )
    _check_budget(scope.budget_usd_per_day)
    if scope.spec is not None and not _HASH.match(scope.spec):
        raise Usage(f"{scope.spec!r} is no hash of a spec.", way_out="openfang spec list")
    named = _globs(scope.toolset, "--toolset"), _globs(scope.agent, "--agent")
    toolsets, agents = opened(*(words or None for words in named))
    projects = tuple(plain_name(project, "project") for project in scope.project)
    return Key(
        id="",
        name=name,
        role=_role(scope),
        edges=_edges(scope.edge),
        toolsets=toolsets,
        agents=agents,
        grants=_grants(tools, scope),
        mode=scope.mode,
        projects=projects or ("default",),
        spec=scope.spec,
        blacklist=tags(scope.blacklist),
        cells_per_minute=scope.limit,
        budget_usd_per_day=scope.budget_usd_per_day,
    )


def _check_budget(dollars: float | None) -> None:
    if dollars is not None and not 0 < dollars <= _MOST_USD:
        raise Usage(
            f"--budget-usd-per-day is {dollars:g}.",
            way_out=f"US dollars, more than 0 and at most {_MOST_USD}",
        )


def _role(scope: Scope) -> Role:
    return Role.ADMIN if scope.admin else scope.role


def _edges(words: tuple[str, ...]) -> tuple[str, ...]:
    if unknown := sorted(set(words) - EDGES):
        raise Usage(
            f"There is no edge {unknown[0]!r}.", way_out=f"one of {', '.join(sorted(EDGES))}"
        )
    return words or _ALL


def _grants(tools: Globs, scope: Scope) -> Grants:
    """Grant what is written; an administrator is granted everything that is not."""
    rest = EVERYTHING if _role(scope) is Role.ADMIN else Grants()
    return Grants(
        tools=tools,
        network=_globs(scope.network, "--network") or rest.network,
        shell=_globs(scope.shell, "--shell") or rest.shell,
        memory_read=_globs(scope.memory_read, "--memory-read") or rest.memory_read,
        memory_write=_globs(scope.memory_write, "--memory-write") or rest.memory_write,
    )


def _globs(words: Globs, option: str) -> Globs:
    if any(not word.strip() for word in words):
        raise Usage(f"{option} is empty.", way_out=f"{option} '*'")
    return words


def _show_secret(body: dict[str, Any], secret: str, *, as_json: bool) -> None:
    if as_json:
        print_json({**body, "secret": secret})
        return
    say(secret)
    kind = "admin token" if body["kind"] == "admin_token" else "key"
    note(f"The {kind} {body['name']} is shown this once. Keep it.")
    for word, value in body.items():
        if word not in _UNSAID and value not in (None, []):
            note(f"  {word.replace('_', ' ')}: {_joined(value)}")


def _joined(value: object) -> str:
    return ", ".join(cast("list[str]", value)) if isinstance(value, list) else str(value)


def list_keys(*, as_json: Json = False) -> None:
    """List keys and admin tokens, never their secrets."""
    found = on_home(lambda session: session.keys())
    bodies = [key_body(key, time.time_ns()) for key in found]
    if as_json:
        print_json(bodies)
        return
    table(
        (
            "name",
            "kind",
            "state",
            "edges",
            "bound to",
            "mode",
            "projects",
            "tools",
            "blacklist",
            "limit",
            "expires",
        ),
        (
            (
                body["name"],
                _kind(body),
                body["state"],
                _unless_all(body.get("edges", _ALL)),
                _bound(body),
                body.get("mode"),
                ", ".join(body.get("projects", ())),
                ", ".join(body["tools"]),
                ", ".join(body.get("blacklist", ())),
                body.get("cells_per_minute"),
                "never" if key.expires_at is None else span(key.expires_at - time.time_ns()),
            )
            for key, body in zip(found, bodies, strict=True)
        ),
    )


def _unless_all(words: Iterable[str]) -> str:
    return "" if tuple(words) == _ALL else ", ".join(words)


def _bound(body: dict[str, Any]) -> str:
    """Name the toolsets and agents that a key opens, if it does not open any."""
    toolsets, agents = body.get("toolsets", _ALL), body.get("agents", _ALL)
    if "*" in toolsets and "*" in agents:
        return ""
    return ", ".join((*toolsets, *(f"agent {name}" for name in agents))) or "nothing"


def _kind(body: dict[str, Any]) -> str:
    role = body.get("role", "user")
    return body["kind"].replace("_", " ") if role == "user" else f"{role} key"


def revoke(name: str, /) -> None:
    """End a key or an admin token, at once.

    Args:
        name: Its name or its id.
    """
    ended = on_home(lambda session: session.revoke_key(name))
    say(f"{ended.name} is revoked.")
