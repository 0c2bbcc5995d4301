"""Patterns, and which of them lie within others."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import Final

# Stand for `*` and `?` of a pattern that is itself matched: only the same can match them.
_STRETCH: Final = "\x01"
_SINGLE: Final = "\x02"
_LONGEST: Final = 1000
_MARKS: Final = re.compile(r"[*?\[]")


@lru_cache(maxsize=4096)
def pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Compile patterns into one that matches whatever any of them does."""
    return re.compile("|".join(translate(glob) for glob in globs))


@lru_cache(maxsize=65_536)
def matches(globs: tuple[str, ...], name: str) -> bool:
    """Whether any of the globs covers the whole name, case and all."""
    return bool(globs) and pattern(globs).match(name) is not None


def head(glob: str) -> str:
    """The part of a pattern that is meant literally, up to the first mark."""
    return _MARKS.split(glob, maxsplit=1)[0]


def tail(glob: str) -> str:
    """The part of a pattern that is meant literally, behind the last mark."""
    return _MARKS.split(glob)[-1].rpartition("]")[2]


def within(glob: str, other: str) -> bool:
    """Whether everything that one glob stands for, the other does; in doubt it is not.

    Sets of characters are such a doubt: two of them are within each other if they are the same.
    """
    if other in {glob, "*"}:
        return True
    if "[" in glob or "[" in other or not (_plain(glob) and _plain(other)):
        return False
    sample = glob.replace("*", _STRETCH).replace("?", _SINGLE)
    return matches((other.replace("?", f"[!{_STRETCH}]"),), sample)


def host_within(host: str, other: str) -> bool:
    """Whether every host that one network grant names, the other does.

    Only `*` is special in these, and one without a port means any.
    """
    host, other = host.lower(), other.lower()
    return any(_host_within(form, other) for form in {host, _without_port(host)})


def _host_within(host: str, other: str) -> bool:
    if not (_plain(host) and _plain(other)):
        return host == other
    literal = other.replace("[", "[[]").replace("?", "[?]")
    return matches((literal,), host.replace("*", _STRETCH))


def _without_port(host: str) -> str:
    name, _, port = host.rpartition(":")
    alone = name and ("[" in name or ":" not in name)
    return name if alone and (port.isdecimal() or port == "*") else host


def _plain(glob: str) -> bool:
    return len(glob) <= _LONGEST and _STRETCH not in glob and _SINGLE not in glob
