"""The values of a skill's settings: the operator's word, else a variable, else its own default."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from openfang.app.variables import expanded
from openfang.config.skills import NO_SETTINGS
from openfang.core.errors import HomeError

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.config.skill_files import SkillFile, SkillVariable

_OURS: Final = ("OPENFANG_", "PATH", "HOME", "TMPDIR", "LD_", "PYTHON", "NODE_OPTIONS")


def values_of(parts: Parts, said: SkillFile) -> dict[str, str]:
    """Find the value of each setting; it blocks. One that must be there and is not is an error."""
    found = {one.name: _value(parts, said.name, one) for one in said.variables}
    return {name: value for name, value in found.items() if value is not None}


def _value(parts: Parts, skill: str, one: SkillVariable) -> str | None:
    settings = parts.config.skills.get(skill, NO_SETTINGS)
    written = settings.config.get(one.name)
    if written is not None:
        return expanded(parts, f"skills.{skill}", written.get_secret_value())
    if one.env and one.env in os.environ and not one.env.startswith(_OURS):
        return os.environ[one.env]
    if one.default is None and one.required:
        raise HomeError(
            f"The skill {skill} needs {one.name}, which nobody has set.",
            way_out=f'config.{one.name} = "..." below [skills.{skill}]',
        )
    return one.default
