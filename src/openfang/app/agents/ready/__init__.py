"""Agents to begin with: manifests that people read, copy and change."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from typing import TYPE_CHECKING, Final

from openfang.config.manifests import TOML
from openfang.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

_ENDING: Final = ".toml"
_NAME: Final = re.compile(r'^name = ".*"$', re.MULTILINE)


def ready_agents() -> dict[str, str]:
    """Give the manifests there are, by name."""
    found = (file for file in resources.files(__name__).iterdir() if file.name.endswith(_ENDING))
    texts = {file.name.removesuffix(_ENDING): file.read_text("utf-8") for file in found}
    return dict(sorted(texts.items()))


def described() -> dict[str, str]:
    """Say what each of them is for."""
    return {name: tomllib.loads(text)["description"] for name, text in ready_agents().items()}


def manifest_of(template: str) -> str:
    """Give one of them as it stands."""
    known = ready_agents()
    if template not in known:
        raise NotFound(
            f"There is no ready-made agent {template}.", way_out=f"one of {', '.join(known)}"
        )
    return known[template]


def copy_of(template: str, name: str) -> Mapping[str, str]:
    """Write the files of a new agent that begins as one of them."""
    return {TOML: _NAME.sub(f'name = "{name}"', manifest_of(template), count=1)}
