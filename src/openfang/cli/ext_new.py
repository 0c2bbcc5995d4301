"""`openfang ext new`: an extension to begin with."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

from cyclopts import Parameter

from openfang.app.installs.starters import id_of, new_extension, write_extension
from openfang.cli.errors import Usage
from openfang.cli.output import note_command, say


def new(
    folder: str,
    /,
    *,
    node: Annotated[bool, Parameter(help="Write it for Node.js.")] = False,
) -> None:
    """Make a folder with an extension that works, a README and its test.

    Args:
        folder: A folder that is new; its name becomes the extension's id.
    """
    id_ = id_of(folder)
    if not id_:
        raise Usage(f"{folder!r} makes no id.", way_out="a name with letters or digits in it")
    place = write_extension(folder, new_extension(id_, node=node))
    say(str(place))
    where = quote(str(place))
    note_command("test it", f"cd {where} && {'node --test' if node else 'python -m unittest'}")
    note_command("install it", f"openfang ext install {where}")
