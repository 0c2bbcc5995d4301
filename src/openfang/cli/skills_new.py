"""`openfang skills new`: a skill to begin with."""

from __future__ import annotations

from shlex import quote

from openfang.app.installs.starters import id_of, write_extension
from openfang.app.skills.starters import new_skill
from openfang.cli.errors import Usage
from openfang.cli.output import note_command, say


def new(folder: str, /) -> None:
    """Make a folder with a skill that works: instructions, a tool, and the tool's test.

    Args:
        folder: A folder that is new; its name becomes the skill's.
    """
    name = id_of(folder)
    if not name:
        raise Usage(f"{folder!r} makes no name.", way_out="a name with letters or digits in it")
    place = write_extension(folder, new_skill(name))
    say(str(place))
    where = quote(str(place))
    note_command("test it", f"cd {where} && python -m unittest")
    note_command("install it", f"openfang skills install {where}")
