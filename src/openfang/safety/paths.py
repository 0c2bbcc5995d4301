"""What a path may look like before anything is opened. Lexical only: who opens confines again."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from openfang.core.errors import OpenFangError

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_COMPONENT: Final = 255
LONGEST_PATH: Final = 4096
_ALL: Final = "/"
_ESCAPED = {"%2e": ".", "%2f": "/", "%5c": "\\"}
_ESCAPE = re.compile("|".join(_ESCAPED), re.IGNORECASE)
# What can stand next to a path inside one element of a command: `--config=../x`, `/a:../b`.
_BETWEEN = r"""[/\\=:,;@"'\s]"""
_PARENT = re.compile(rf"(?:\A|{_BETWEEN})\.\.(?:\Z|{_BETWEEN})")


class FileRefused(OpenFangError):  # noqa: N818 - it reads as what it is
    """A path that leaves its folder, or a file that is not for reading or writing."""

    code = "file_refused"


def components(path: str, *, root: str | None = None) -> tuple[str, ...]:
    """Split a path into the names below its folder; an absolute one must lie below `root`."""
    _check_text(path)
    parts = [part for part in _below(path, root).split("/") if part not in {"", "."}]
    if ".." in parts:
        raise FileRefused(f"The path {path!r} contains '..'", way_out="name the file directly")
    for part in parts:
        if len(part.encode()) > LONGEST_COMPONENT:
            raise FileRefused(f"The name {part[:40]!r}... is over {LONGEST_COMPONENT} bytes long")
    return tuple(parts)


def is_closed(names: tuple[str, ...], closed: Iterable[str], *, root: str) -> bool:
    """Whether a path below `root` is among those that are closed, or lies below one of them.

    A pattern without a slash closes that name wherever it stands.
    """
    leading = ["/" + "/".join(names[: end + 1]) for end in range(len(names))]
    patterns = [_pattern_below(pattern, root) for pattern in closed]
    return _ALL in patterns or any(
        fnmatchcase(one, pattern)
        for pattern in filter(None, patterns)
        for one in (leading if pattern.startswith("/") else names)
    )


def _pattern_below(pattern: str, root: str) -> str | None:
    """Write a pattern as it counts from `root`, or as a mere name; None for nothing of it."""
    plain = "/".join(part for part in pattern.split("/") if part not in {"", "."})
    if not pattern.startswith("/"):
        return f"/{plain}" if "/" in plain or not plain else plain
    whole = root.strip("/")
    if plain == whole or not plain or whole.startswith(f"{plain}/"):
        return _ALL
    return plain.removeprefix(whole) if plain.startswith(f"{whole}/") else None


def has_parent_reference(text: str) -> bool:
    """Whether an element of a command climbs with `..`, also escaped or behind an option."""
    return _PARENT.search(_ESCAPE.sub(_unescape, text)) is not None


def _unescape(match: re.Match[str]) -> str:
    return _ESCAPED[match[0].lower()]


def _check_text(path: str) -> None:
    if not path:
        raise FileRefused("The path is empty", way_out="name a file, or '.' for the folder itself")
    if "\0" in path:
        raise FileRefused(f"The path {path!r} contains a NUL character")
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        raise FileRefused(f"The path {path!a} is not text") from None
    if length > LONGEST_PATH:
        raise FileRefused(f"The path of {length} bytes is over {LONGEST_PATH} bytes long")


def _below(path: str, root: str | None) -> str:
    if not path.startswith("/"):
        return path
    prefix = f"{root.rstrip('/')}/" if root else ""
    if prefix and f"{path}/".startswith(prefix):
        return path[len(prefix) :]
    raise FileRefused(
        f"The path {path!r} is outside of the folder", way_out="use a path relative to the folder"
    )
