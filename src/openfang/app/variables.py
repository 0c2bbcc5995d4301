"""What `${NAME}` in a setting stands for: a variable of ours, else a secret that is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.safety.environment import VariableRefused, expand, references

if TYPE_CHECKING:
    from openfang.app.parts import Parts


def expanded(parts: Parts, owner: str, text: str) -> str:
    """Put in what it stands for; it is redacted from now on. It blocks: use it in a thread."""
    value = expand(text, {name: _value(parts, name) for name in references(text)})
    parts.redactor.learn([value], owner)
    return value


def _value(parts: Parts, name: str) -> str:
    if parts.servers and name in parts.servers.environ:
        return parts.servers.environ[name]
    if name in parts.secrets.names():
        return parts.secrets.get(name)
    raise VariableRefused(
        f"{name} is neither set nor stored.", way_out=f"openfang secrets set {name}"
    )
