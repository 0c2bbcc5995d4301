"""`openfang status`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Final

import anyio
from cyclopts import Parameter

from openfang.app.daemon.status import read_status
from openfang.app.home.paths import Home
from openfang.cli.errors import ERROR
from openfang.cli.options import Json
from openfang.cli.output import clean, fields, print_json, say
from openfang.cli.times import span
from openfang.config.home import find_home

_SECOND: Final = 1_000_000_000
_SHOWN_HASH: Final = 16


def status(
    *,
    check: Annotated[bool, Parameter(help="Exit with 1 unless a daemon answers.")] = False,
    as_json: Json = False,
) -> int:
    """Say whether a daemon runs and how the node is. Exits with 0 either way: see `running`."""
    body = anyio.run(read_status, Home(find_home(os.environ)), os.environ)
    if as_json:
        print_json(body)
    else:
        say(_headline(body))
        rows = ((name, key, shown) for name, key, shown in _ROWS if key in body)
        fields({name: shown(body[key]) for name, key, shown in rows})
    return ERROR if check and "url" not in body else 0


def _headline(body: dict[str, Any]) -> str:
    if "url" in body:
        busy = f" ({clean(body['busy'])})" if "busy" in body else ""
        return f"The daemon runs: {body['url']}{busy}"
    if body["running"]:
        found = clean(body["found"])
        return f"The daemon does not answer: {found}. Wait, or: openfang stop --kill"
    if "pid" in body:
        return f"No daemon answers: {body['found']}. End it with: openfang stop"
    found = f" ({body['found']})" if "found" in body else ""
    return f"No daemon runs{found}. Start one with: openfang start"


def _started(text: str) -> str:
    """Say when, in the person's own time, and how long ago."""
    moment = datetime.fromisoformat(text).astimezone()
    ago = span(time.time_ns() - int(moment.timestamp()) * _SECOND)
    return f"{moment:%Y-%m-%d %H:%M:%S} ({ago} ago)"


def _audit(audit: dict[str, Any]) -> str:
    records = f"{audit['records']} record{'' if audit['records'] == 1 else 's'}"
    anchor = audit.get("anchor")
    told = "" if not anchor else f"; {_anchored(anchor)}"
    return f"{records}, the last is {audit['hash'][:_SHOWN_HASH]}{told}"


def _anchored(anchor: dict[str, Any]) -> str:
    if not anchor["waiting"]:
        return f"anchored at {anchor['host']} up to {anchor['anchored']}"
    since = str(anchor["since"])[:19].replace("T", " ")
    return f"NOT anchored at {anchor['host']} since {since}: {anchor['waiting']} checkpoints wait"


def _config(config: dict[str, Any]) -> str:
    lines = [f"{config['state']} ({config['file']})"]
    lines += [_problem(problem) for problem in config["problems"]]
    if config.get("needs_restart"):
        lines.append(f"in force after a restart: {', '.join(config['needs_restart'])}")
    return "\n".join(lines)


def _problem(problem: dict[str, Any]) -> str:
    place = f"{problem['file']}:{problem['line']}" if problem["line"] else problem["file"]
    return ": ".join(part for part in (place, problem["key"], problem["message"]) if part)


def _waiting(command: str) -> Callable[[int], str]:
    """Write how many wait for a person, and what shows them."""
    return lambda count: f"{count}: {command}" if count else "0"


_ROWS: Final[tuple[tuple[str, str, Callable[[Any], str]], ...]] = (
    ("process", "pid", str),
    ("version", "version", str),
    ("started", "started_at", _started),
    ("home", "home", str),
    ("node", "node", str),
    ("you are", "caller", str),
    ("tools", "tools", str),
    ("open questions", "approvals", _waiting("openfang approvals list")),
    ("held back", "held", _waiting("openfang servers held")),
    ("rules", "rules", str),
    ("audit", "audit", _audit),
    ("configuration", "config", _config),
    ("event listeners", "listeners", str),
    ("problem", "problem", str),
    ("way out", "way_out", str),
)
