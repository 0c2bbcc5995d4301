"""Which values of a server's entry are secret, and the entry that only names them."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.config.servers import HttpTransport
from openfang.core.values import dataclass
from openfang.safety.environment import VariableRefused
from openfang.safety.redact import Redactor
from openfang.sources.mcp.spec import Http

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pydantic import SecretStr

    from openfang.config.servers import McpServer
    from openfang.sources.mcp.spec import Reached

_PREFIX: Final = "MCP"
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SCHEMES = re.compile(r"\b(?:bearer|basic|token|apikey)\b", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:api|key|apikey|token|secret|pass|passwd|password|passphrase|pwd|pat|auth|bearer|"
    r"credentials?|cookie|session|dsn|private|signature|jwt|database_url|connection_string)(?:_|$)",
    re.IGNORECASE,
)
# Narrower: what is taken for a secret here is taken out of everybody's results.
_SURELY_SECRET_NAME = re.compile(
    r"(?:^|_)(?:key|apikey|token|secret|pass|passwd|password|passphrase|pwd|pat|bearer|"
    r"credentials?|cookie|jwt|dsn)$",
    re.IGNORECASE,
)
_NO_PLAIN_WORD = re.compile(r"(?=.*[0-9])(?=.*[^0-9]).{8,}", re.DOTALL)
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
    taken: Collection[str] = ()

    def free(self, name: str) -> str:
        """Give a name that stands for nothing yet."""
        free, number = name, 2
        while free in self.taken or free in self.secrets:
            free, number = f"{name}_{number}", number + 1
        return free


def seal(entry: Mapping[str, Any], taken: Collection[str] = ()) -> Sealed:
    """Put a reference in the place of every secret of the child's variables and the headers.

    Names that are `taken` stand for something else already.
    """
    sealed = Sealed(entry=dict(entry), taken=taken)
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
            reference = sealed.free(_name(sealed.entry["name"], name))
            sealed.secrets[reference] = value
            table[name] = f"${{{reference}}}"
    return table


def _name(server: str, variable: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", f"{_PREFIX}_{server}_{variable}").upper()


def referred(server: McpServer) -> set[str]:
    """Name what a server's variables and headers refer to."""
    headers = server.transport.headers if isinstance(server.transport, HttpTransport) else {}
    env = server.env if isinstance(server.env, dict) else {}
    passed_on = () if isinstance(server.env, dict) else server.env
    values = (
        value.get_secret_value() for value in (*env.values(), *headers.values(), *_proofs(server))
    )
    return {*passed_on, *(name for value in values for name in _REFERENCE.findall(value))}


def _proofs(server: McpServer) -> list[SecretStr]:
    oauth = server.transport.oauth if isinstance(server.transport, HttpTransport) else None
    return [proof for proof in (oauth.client_secret, oauth.private_key) if proof] if oauth else []


def referred_by(entry: Mapping[str, Any]) -> set[str]:
    """Name what an entry's variables and headers refer to, before it is read as a server."""
    env: dict[str, str] | list[str] = entry.get("env", {})
    headers: dict[str, str] = entry["transport"].get("headers", {})
    values = (*(env.values() if isinstance(env, dict) else ()), *headers.values())
    passed_on = () if isinstance(env, dict) else env
    return {*passed_on, *(name for value in values for name in _REFERENCE.findall(value))}


def handed_over(reached: Reached) -> list[str]:
    """Find the secrets that a server is given, wherever they come from; it may tell them again."""
    if isinstance(reached, Http):
        headers = reached.headers.items()
        found = [value for name, value in headers if name.lower() not in _PLAIN_HEADERS]
        return [one for value in found if _NO_PLAIN_WORD.fullmatch(one := value.split(" ")[-1])]
    return secrets_in(reached.environment)


def secrets_in(environment: Mapping[str, str]) -> list[str]:
    """Find the secrets among variables that somebody is given."""
    return [value for name, value in environment.items() if _is_surely_secret(name, value)]


def _is_surely_secret(name: str, value: str) -> bool:
    named = _SURELY_SECRET_NAME.search(_spelled(name))
    return bool(named and _NO_PLAIN_WORD.fullmatch(value))


def made_for(name: str, servers: Iterable[str]) -> str:
    """Say for which of these servers a secret of this name is stored when it is added, if any."""
    return max((one for one in servers if name.startswith(_name(one, ""))), key=len, default="")


def check_references(server: McpServer, variables: Mapping[str, str]) -> None:
    """Refuse a server that refers to what is neither set nor stored."""
    if missing := sorted(name for name in referred(server) if name not in variables):
        are = "is" if len(missing) == 1 else "are"
        raise VariableRefused(
            f"{', '.join(missing)} {are} not set", way_out=f"openfang secrets set {missing[0]}"
        )


def own_secrets(server: McpServer) -> set[str]:
    """Name the stored secrets that were made for this server, among what it refers to."""
    prefix = _name(server.name, "")
    return {name for name in referred(server) if name.startswith(prefix)}


def _is_secret_variable(name: str, value: str) -> bool:
    if not _literal(value):
        return False
    return bool(_SECRET_NAME.search(_spelled(name))) or looks_secret(value)


def _spelled(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)


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
