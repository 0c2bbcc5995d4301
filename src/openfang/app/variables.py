"""What `${NAME}` in a setting stands for: a variable of ours, else a secret that is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.safety.environment import VariableRefused, expand, references

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from openfang.app.parts import Parts


def expanded(
    parts: Parts, owner: str, texts: Mapping[str, str], secrets: Iterable[str] = ()
) -> dict[str, str]:
    """Put in what each of an owner's settings stands for. It blocks: use it in a thread.

    All of them, and other `secrets` of that owner's, are redacted from now on: what is told later
    takes the place of what was told before.
    """
    values = {key: _expanded(parts, text) for key, text in texts.items()}
    parts.redactor.learn([*values.values(), *secrets], owner)
    return values


def _expanded(parts: Parts, text: str) -> str:
    return expand(text, {name: _value(parts, name) for name in references(text)})


def _value(parts: Parts, name: str) -> str:
    if parts.servers and name in parts.servers.environ:
        return parts.servers.environ[name]
    if name in parts.secrets.names():
        return parts.secrets.get(name)
    raise VariableRefused(
        f"{name} is neither set nor stored.", way_out=f"openfang secrets set {name}"
    )
