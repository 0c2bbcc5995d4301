"""`openfang init`."""

from __future__ import annotations

import os

from openfang.app.home.new import Made, init_home
from openfang.app.home.paths import Home
from openfang.cli.output import fields, say
from openfang.cli.shell import preparation
from openfang.config.home import find_home


def init() -> None:
    """Make the home: configuration, database, first key, two agents. A second time nothing changes.

    A key file whose key is not in force is kept as `key.old`, and a new key is made.
    """
    home, made = init_home(find_home(os.environ), os.environ)
    say(_what_was_made(home, made))
    fields(
        {
            "home": home.path,
            "configuration": home.config_file,
            "your key": f"{home.key_file} (an administrator's; commands use it by themselves)",
        }
    )
    say("\nTry:")
    for line in preparation(home.path):
        say(f"  {line}")
    say("  openfang tools list")
    say("  openfang chat assistant")
    say("""  openfang explain shell_exec --args '{"command": "ls"}'""")


def _what_was_made(home: Home, made: Made) -> str:
    match made:
        case Made.HOME:
            return "The home is made."
        case Made.KEY:
            return (
                f"{home.key_file} held no key that is in force: it is kept as "
                f"{home.old_key_file}, and a new administrator's key is made."
            )
        case Made.NOTHING:
            return "The home is there already; nothing was changed."
