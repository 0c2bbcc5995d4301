"""Tables of keys, events, errors and variables."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from functools import cache
from typing import TYPE_CHECKING, Final

import openfang
from openfang.config import extension_manifests, manifests, schema
from openfang.config.rules import RuleEntry, TestEntry
from openfang.core.bodies import _STATUS
from openfang.core.error_codes import CODES
from openfang.core.errors import CallFailed, CallRefused, OpenFangError, Rejected
from openfang.core.event_kinds import KINDS
from openfang.policy.rules.conditions import VARIABLES
from openfang.policy.rules.language import FUNCTIONS, VARIABLES_IN_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from openfang.config.schema import Setting

_ROOT = re.compile(r"[a-z0-9_]+")
_KEYS: Final = ("key", "value", "default", "meaning")
_OTHERS: Final[Mapping[str, Callable[[], list[Setting]]]] = {
    "agent.toml": lambda: manifests.settings("agent.toml"),
    "agent.json": lambda: manifests.settings("agent.json"),
    "manifest.json": extension_manifests.settings,
    "rules": lambda: schema.settings(RuleEntry),
    "tests": lambda: schema.settings(TestEntry),
}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table."""
    return "".join(
        f"{line}\n" for line in (_row(heads), "|---" * len(heads) + "|", *map(_row, rows))
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def keys(*roots: str) -> str:
    """The keys of the configuration below these, or those at its root."""
    found = [one for one in schema.settings() if _below(one.key, roots)]
    return table(_KEYS, map(key, found))


def _below(name: str, roots: tuple[str, ...]) -> bool:
    at_root = _ROOT.fullmatch(name) is not None
    return not at_root and name.startswith(_starts(roots)) if roots else at_root


def _starts(roots: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{root}{mark}" for root in roots for mark in ".[")


def keys_of(file: str) -> str:
    """The keys of another file."""
    return table(_KEYS, map(key, _OTHERS[file]()))


def key(setting: Setting) -> tuple[str, str, str, str]:
    """One key: what stands there, what if it is not there, what it means."""
    kind = setting.kind.replace("|", "\\|")
    return f"`{setting.key}`", kind, _default(setting), setting.description


def _default(setting: Setting) -> str:
    if setting.required:
        return "required"
    if setting.default is None:
        return "unset"
    if setting.kind == "a table" and setting.default:
        return "as below"
    return f"`{json.dumps(setting.default)}`"


def events() -> str:
    """Every kind of record."""
    return table(
        ("event", "level", "when", "payload"),
        ((f"`{one.name}`", ", ".join(one.levels), one.when, _words(one.fields)) for one in KINDS),
    )


def _words(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def errors() -> str:
    """Every code, with the status that HTTP has for it."""
    kinds = {kind.code: kind for kind in _all(OpenFangError)}
    rows = (
        (f"`{code}`", status(kinds[code]), _family(kinds[code]), said.when, said.helps)
        for code, said in CODES.items()
    )
    return table(("code", "status", "ran", "when", "what helps"), rows)


def status(kind: type[OpenFangError]) -> str:
    """The status of an answer by HTTP; of what never reaches it, none."""
    if issubclass(kind, CallFailed):
        return "200, `error`"
    if issubclass(kind, Rejected):
        return "as the check says"
    found = next((number for known, number in _STATUS if issubclass(kind, known)), None)
    return "" if found is None else str(found)


def _family(kind: type[OpenFangError]) -> str:
    if issubclass(kind, CallRefused):
        return "no"
    return "yes" if issubclass(kind, CallFailed) else ""


@cache
def _everything() -> None:
    for module in pkgutil.walk_packages(openfang.__path__, "openfang."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _all(kind: type[OpenFangError]) -> set[type[OpenFangError]]:
    _everything()
    return {kind}.union(*(_all(child) for child in kind.__subclasses__()))


def variables() -> str:
    """What a condition can read."""
    return table(
        ("variable", "type", "what it is"),
        ((f"`{name}`", VARIABLES[name], text) for name, text in VARIABLES_IN_WORDS.items()),
    )


def functions() -> str:
    """What a condition can do with it."""
    return table(
        ("function", "what it is for", "for example"),
        (
            (_words(names.split(", ")), said.what, f"`{said.example}`")
            for names, said in FUNCTIONS.items()
        ),
    )
