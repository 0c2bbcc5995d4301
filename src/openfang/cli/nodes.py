"""`openfang nodes list|drain|resume|remove|trust`: the nodes of one database, and others of ours.

Those elsewhere are believed by their signatures.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from cyclopts import Parameter

from openfang.app.home.together import together
from openfang.app.nodes.book import fingerprint
from openfang.app.nodes.trusting import (
    entry_of,
    fetch_key,
    listed,
    own_fingerprint,
    trusted,
    trusted_no_longer,
)
from openfang.cli.errors import REFUSED, Usage
from openfang.cli.options import Json
from openfang.cli.output import note, print_json, say, table
from openfang.cli.session import on_home, run_async
from openfang.config.home import find_home

if TYPE_CHECKING:
    from pathlib import Path

_YES = frozenset({"y", "yes"})
_SHORTEST = 16
_SHOWN = ("node", "state", "address", "version", "schema", "heard_secs")
_COLUMNS = ("node", "state", "address", "version", "schema", "heard (s)")


def trust(
    url: str,
    /,
    *,
    name: Annotated[str, Parameter(help="What it is called here; else its host.")] = "",
    comes_as: Annotated[str, Parameter(help="The name of the key it calls this node with.")] = "",
    allow_private: Annotated[
        bool, Parameter(help="Its address is a loopback or private one.", negative=())
    ] = False,
    fingerprint_: Annotated[
        str, Parameter(name="--fingerprint", help="The fingerprint that its key must have.")
    ] = "",
    yes: Annotated[bool, Parameter(help="Do not ask; needs --fingerprint.", negative=())] = False,
    as_json: Json = False,
) -> int:
    """Believe another node: fetch its key, show the fingerprint, and write it down.

    For example `openfang nodes trust https://node.example`.

    Compare the fingerprint with what `openfang nodes list` shows there as its own.

    Args:
        url: The address under which the node is reached.
    """
    if yes and len(fingerprint_) < _SHORTEST:
        raise Usage("--yes needs --fingerprint: somebody must have compared the key.")
    home, called = find_home(os.environ), name or _name_of(url)
    key = run_async(lambda: fetch_key(url, allow_private=allow_private))
    found, before = fingerprint(key), _believed(home, called)
    wanted = fingerprint_.lower().replace(":", "")
    if wanted and not (len(wanted) >= _SHORTEST and found.startswith(wanted)):
        note(f"{url} has the key {found}, not {fingerprint_}: nothing was changed.")
        return REFUSED
    if before and before["fingerprint"] != found:
        note(f"{called} was believed with another key until now: {before['fingerprint']}")
    if not yes and not _agreed(called, url, found):
        note("Nothing was changed.")
        return REFUSED
    comes_as = comes_as or (before["comes_as"] or "" if before else "")
    entry = entry_of(called, url, key, allow_private=allow_private, comes_as=comes_as)
    trusted(home, os.environ, entry)
    if as_json:
        print_json({**entry, "fingerprint": found})
    else:
        say(f"{called} is believed from now on: {found}")
    return 0


def _name_of(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Usage(f"{url} is no address of a node: write it as https://node.example")
    return parts.hostname.replace(".", "-").replace(":", "-")


def _believed(home: Path, name: str) -> dict[str, Any] | None:
    return next((one for one in listed(home, os.environ) if one["name"] == name), None)


def _agreed(name: str, url: str, found: str) -> bool:
    say(f"{name} at {url} signs with the key")
    say(f"  {found}")
    try:
        answer = input("Believe what it signs? [y/N] ")
    except EOFError:
        say()
        return False
    return answer.strip().lower() in _YES


def list_nodes(*, as_json: Json = False) -> None:
    """List the nodes that share this one's database, then those elsewhere that are believed.

    Of those elsewhere the fingerprints of their keys are shown, and of our own.
    """
    home = find_home(os.environ)
    members = together(home, os.environ)
    found, own = listed(home, os.environ), own_fingerprint(home, os.environ)
    if as_json:
        print_json({"members": members, "this": own, "nodes": found})
        return
    if members:
        table(_COLUMNS, [tuple(str(one[name]) for name in _SHOWN) for one in members])
    note(f"This node signs with {own}")
    rows = [(one["name"], one["url"], one["fingerprint"], one["comes_as"] or "") for one in found]
    if rows:
        table(("name", "url", "fingerprint", "comes as"), rows)
    else:
        note("No other node is believed: openfang nodes trust URL")


def drain(name: str, /, *, as_json: Json = False) -> None:
    """Let a node take nothing new: balancers pass it by, and what it works on ends first.

    Args:
        name: The node's name.
    """
    _act(name, "drain", "takes nothing new", as_json=as_json)


def resume(name: str, /, *, as_json: Json = False) -> None:
    """Let a node that drains take work again.

    Args:
        name: The node's name.
    """
    _act(name, "resume", "takes work again", as_json=as_json)


def remove(name: str, /, *, as_json: Json = False) -> None:
    """Forget a node of the database that is dead or has left, or believe one elsewhere no longer.

    Its chain stays in the log.

    Args:
        name: The node's name, or what it is called here.
    """
    home = find_home(os.environ)
    if any(one["node"] == name for one in together(home, os.environ)):
        _act(name, "remove", "is forgotten", as_json=as_json)
        return
    trusted_no_longer(home, os.environ, name)
    if as_json:
        print_json({"name": name})
    else:
        say(f"{name} is believed no longer.")


def _act(name: str, act: str, done: str, *, as_json: bool) -> None:
    one = on_home(lambda session: session.change_node(name, act))
    if as_json:
        print_json(dict(one))
    else:
        say(f"{one['node']} {done}.")
