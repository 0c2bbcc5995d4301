"""The values of a skill's settings: the operator's word, else a variable, else its own default."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from openfang.app.servers.sealing import secrets_in
from openfang.app.variables import expanded
from openfang.config.skills import NO_SETTINGS
from openfang.core.errors import HomeError
from openfang.safety.environment import is_ours

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.config.skill_files import SkillFile, SkillVariable


def values_of(parts: Parts, said: SkillFile) -> dict[str, str]:
    """Find the value of each setting; it blocks. One that must be there and is not is an error."""
    config = parts.config.skills.get(said.name, NO_SETTINGS).config
    known = {one.name: one for one in said.variables}
    written = {name: one.get_secret_value() for name, one in config.items() if name in known}
    given = {name: one.env for name, one in known.items() if name not in written and _is_set(one)}
    secrets = secrets_in({name: os.environ[name] for name in given.values()})
    values = {name: one.default for name, one in known.items() if one.default is not None}
    values |= {name: os.environ[variable] for name, variable in given.items()}
    values |= expanded(parts, f"skills.{said.name}", written, secrets)
    for name, one in known.items():
        if one.required and name not in values:
            raise HomeError(
                f"The skill {said.name} needs {name}, which nobody has set.",
                way_out=f'config.{name} = "..." below [skills.{said.name}]',
            )
    return values


def _is_set(one: SkillVariable) -> bool:
    return one.env in os.environ and not is_ours(one.env)
