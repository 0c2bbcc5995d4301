"""What a server says it can do, as far as it makes a difference to us; and what that is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

READ: Final = "resources/read"
SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"
PROMPT: Final = "prompts/get"
COMPLETE: Final = "completion/complete"
OPERATIONS: Final = frozenset({READ, SUBSCRIBE, UNSUBSCRIBE, PROMPT, COMPLETE})

Abilities: TypeAlias = Mapping[str, Mapping[str, bool]]
_LONGEST_WORD: Final = 200
_MOST_WORDS: Final = 16
_KNOWN: Final = {
    "tools": ("listChanged",),
    "resources": ("listChanged", "subscribe"),
    "prompts": ("listChanged",),
    "completions": (),
    "logging": (),
}


def read_abilities(capabilities: Mapping[str, Any]) -> Abilities:
    """Take what is known here, whatever else was said."""
    return {
        name: {flag: True for flag in flags if cast("dict[str, Any]", said).get(flag)}
        for name, flags in _KNOWN.items()
        if isinstance(said := capabilities.get(name), dict)
    }


def info_in_short(info: Mapping[str, Any]) -> dict[str, str]:
    """Keep what a server says of itself, as far as anybody would read it."""
    words = [(name, text) for name, text in info.items() if isinstance(text, str)]
    return {name[:_LONGEST_WORD]: text[:_LONGEST_WORD] for name, text in words[:_MOST_WORDS]}


def able(abilities: Abilities, name: str, flag: str) -> bool:
    """Whether it says that it can do this as well."""
    return abilities.get(name, {}).get(flag, False)
