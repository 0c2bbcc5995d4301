"""A child's environment, built from nothing: `PATH`, its folders, what was listed for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from openfang.core.errors import OpenFangError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_OURS: Final = frozenset({"PATH", "HOME", "TMPDIR", "NODE_OPTIONS"})
_OURS_BEGIN: Final = ("OPENFANG_", "LD_", "PYTHON")
_NAME = re.compile(r"\A[A-Za-z_][A-Za-z0-9_]*\Z")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class VariableRefused(OpenFangError):  # noqa: N818 - it reads as what it is
    """A variable that a child should get is not set here, or is no variable."""

    code = "variable_refused"


def child_environment(  # noqa: PLR0913 - each is another place that a variable comes from
    parent: Mapping[str, str],
    *,
    names: Sequence[str] = (),
    values: Mapping[str, str] | None = None,
    literal: Mapping[str, str] | None = None,
    home: str | None = None,
    tmp: str | None = None,
) -> dict[str, str]:
    """Give a child `PATH`, its folders, the listed names and two tables; the last wins.

    `values` come from the configuration, and may name our variables; `literal` is what others sent,
    and is passed on as it is.
    """
    environment = {"PATH": parent.get("PATH") or DEFAULT_PATH}
    if home is not None:
        environment["HOME"] = home
    if tmp is not None:
        environment["TMPDIR"] = tmp
    for name in names:
        environment[_checked(name)] = _look_up(parent, name)
    for name, value in (values or {}).items():
        environment[_checked(name)] = expand(value, parent)
    for name, value in (literal or {}).items():
        environment[_checked(name)] = _without_nul(value)
    return environment


def is_ours(name: str) -> bool:
    """Whether a variable is no program's to ask for: our keys, its folders, what its code is."""
    return name in _OURS or name.startswith(_OURS_BEGIN)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace each `${NAME}`, once: what a variable holds is not expanded again."""
    return _REFERENCE.sub(lambda match: _look_up(variables, match[1]), _without_nul(text))


def references(text: str) -> list[str]:
    """Name the variables that a text refers to."""
    return _REFERENCE.findall(text)


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise VariableRefused(f"The value {text!r} contains a NUL character")
    return text


def _look_up(variables: Mapping[str, str], name: str) -> str:
    if name not in variables:
        raise VariableRefused(
            f"The environment variable {name} is not set",
            way_out=f"export {name}=... and start again",
        )
    return variables[name]


def _checked(name: str) -> str:
    if not _NAME.match(name):
        raise VariableRefused(f"{name!r} is not the name of an environment variable")
    return name
