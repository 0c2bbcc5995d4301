"""`openfang init`."""

from __future__ import annotations

import os

from openfang.app.home import init_home
from openfang.cli.output import fields, say
from openfang.config.load import find_home


def init() -> None:
    """Make the home: configuration, database, first key. A second time nothing changes."""
    home, fresh = init_home(find_home(os.environ), os.environ)
    say("The home is made." if fresh else "The home is there already; nothing was changed.")
    fields(
        {
            "home": home.path,
            "configuration": home.config_file,
            "your key": f"{home.key_file} (an administrator's; commands use it by themselves)",
        }
    )
    say("\nTry:")
    say("  openfang tools list")
    say("  openfang tools call system_time")
    say("""  openfang explain shell_exec --args '{"command": "ls"}'""")
