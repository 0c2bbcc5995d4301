"""Which values of a server's entry are secret, and the entry that only names them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.safety.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX: Final = "MCP"
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SCHEMES = re.compile(r"\b(?:bearer|basic|token|apikey)\b", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:api|key|apikey|token|secret|pass|passwd|password|passphrase|pwd|pat|auth|bearer|"
    r"credentials?|cookie|session|dsn|private|signature|jwt|database_url|connection_string)(?:_|$)",
    re.IGNORECASE,
)
_CREDENTIALS_IN_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/@:]*:[^\s/@]+@", re.IGNORECASE)
_LONG_AND_MIXED = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_+=.-]{24,}")
_PLAIN_HEADERS = frozenset(
    {"accept", "accept-language", "content-type", "user-agent", "mcp-protocol-version", "x-client"}
)
_SHAPES = Redactor(bytes(16))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """An entry without its secrets, and these, by the names that the entry knows them by."""

    entry: dict[str, Any]
    secrets: dict[str, str] = field(default_factory=dict[str, str], repr=False)


def seal(entry: Mapping[str, Any]) -> Sealed:
    """Put a reference in the place of every secret of the child's variables and the headers."""
    sealed = Sealed(entry=dict(entry))
    env: object = entry.get("env")
    if isinstance(env, dict):
        values = cast("dict[str, str]", env)
        sealed.entry["env"] = _table(sealed, values, _is_secret_variable)
    transport = cast("dict[str, Any]", entry["transport"])
    if headers := transport.get("headers"):
        named = _table(sealed, headers, _is_secret_header)
        sealed.entry["transport"] = {**transport, "headers": named}
    return sealed


def _table(sealed: Sealed, values: Mapping[str, str], secret: Any) -> dict[str, str]:  # noqa: ANN401 - a rule of below
    table: dict[str, str] = {}
    for name, value in values.items():
        table[name] = value
        if secret(name, value):
            reference = _name(sealed.entry["name"], name)
            sealed.secrets[reference] = value
            table[name] = f"${{{reference}}}"
    return table


def _name(server: str, variable: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", f"{_PREFIX}_{server}_{variable}").upper()


def own_secrets(server: str, texts: list[str]) -> set[str]:
    """Name the stored secrets that were made for this server, among what its values refer to."""
    prefix = _name(server, "")
    named = {name for text in texts for name in _REFERENCE.findall(text)}
    return {name for name in named if name.startswith(prefix)}


def _is_secret_variable(name: str, value: str) -> bool:
    if not _literal(value):
        return False
    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return bool(_SECRET_NAME.search(spelled)) or looks_secret(value)


def _is_secret_header(name: str, value: str) -> bool:
    return bool(_literal(value)) and name.lower() not in _PLAIN_HEADERS


def looks_secret(value: str) -> bool:
    """Whether a value is one by its form: a known shape, a password in an address, or random."""
    return (
        bool(_CREDENTIALS_IN_URL.search(value))
        or bool(_LONG_AND_MIXED.fullmatch(value))
        or _SHAPES.contains_secret(value)
    )


def _literal(value: str) -> str:
    """What of a value is neither a reference nor the word that says how to sign in."""
    return re.sub(r"\W", "", _SCHEMES.sub("", _REFERENCE.sub("", value)))
