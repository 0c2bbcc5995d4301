"""How other programs write variables, and the same in our words: `${NAME}`."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_BARE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SECRET = re.compile(r"key|token|secret|pass|pwd|auth|credential", re.IGNORECASE)
_DEFAULT: Final = ":-"


def wanting(name: str) -> str:
    """Say that a variable is neither set nor known to be stored."""
    return f"needs {name}: openfang secrets set {name}"


class Refused(Exception):  # noqa: N818 - it reads as what it is
    """An entry that cannot be said in our words; the message says why, after `because`."""


@dataclass(slots=True, kw_only=True)
class References:
    """What the references of one file stand for. `folders` are names such as `userHome`.

    In a file whose references may be `bare`, `$NAME` is one as well.
    """

    variables: Mapping[str, str]
    folders: Mapping[str, str]
    bare: bool = False
    _taken: list[str] = field(default_factory=list[str])

    def kept(self, text: str) -> str:
        """Write the references of a value that we expand ourselves in our way."""
        return _REFERENCE.sub(lambda found: self._kept(found[1]), self._dressed(text))

    def value(self, text: str) -> str:
        """Put values in the place of the references: where they stand, nothing is expanded."""
        return _REFERENCE.sub(lambda found: self._value(found[1]), self._dressed(text))

    def _dressed(self, text: str) -> str:
        return _BARE.sub(r"${\1}", text) if self.bare else text

    def taken(self) -> list[str]:
        """Say what the entry wants to be set, and forget it."""
        taken, self._taken = self._taken, []
        return taken

    def _kept(self, reference: str) -> str:
        if reference in self.folders:
            return self.folders[reference]
        name, default = self._variable(reference)
        if default is not None and name not in self.variables:
            return default
        if name not in self.variables:
            self._taken.append(wanting(name))
        return f"${{{name}}}"

    def _value(self, reference: str) -> str:
        if reference in self.folders:
            return self.folders[reference]
        name, default = self._variable(reference)
        if name not in self.variables:
            if default is not None:
                return default
            raise Refused(f"its command or address needs ${{{name}}}, which is not set")
        if _SECRET.search(name):
            raise Refused(
                f"its command or address holds the secret ${{{name}}}: use env or headers"
            )
        self._taken.append(f"the value of {name} is written out")
        return self.variables[name]

    def _variable(self, reference: str) -> tuple[str, str | None]:
        """Find the variable behind `NAME`, `NAME:-default`, `env:NAME` and `input:an-id`."""
        kind, _, rest = reference.partition(":")
        if kind == "env" and rest and not rest.startswith("-"):
            reference = rest
        elif kind == "input" and rest:
            reference = re.sub(r"[^A-Za-z0-9]+", "_", rest).strip("_").upper()
            reference = reference if _NAME.match(reference) else f"INPUT_{reference}"
        name, mark, default = reference.partition(_DEFAULT)
        if not _NAME.match(name):
            raise Refused(f"${{{reference}}} means nothing here")
        return name, default if mark else None
