"""`openfang backup`, `openfang restore`."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from openfang.app.home.backup import Backup, back_up
from openfang.app.home.paths import Home
from openfang.app.home.restore import Restored, restore
from openfang.cli.errors import Usage
from openfang.cli.options import STDIN, File, Json
from openfang.cli.output import clean, fields, note, print_json, say
from openfang.cli.session import run_async
from openfang.config.home import find_home

_MOST_TOLD = 20


def backup(file: File = "", /, *, as_json: Json = False) -> None:
    """Copy the whole home into one file, while a daemon and others go on using it.

    The file holds the node's keys and everything that its callers wrote. It is its owner's alone.

    Args:
        file: A new file, or a folder for one; else `openfang-NODE-TIME.tar.gz` in this folder.
    """
    _refuse_stream(file, "a backup goes to a file: it is renamed when it is whole")

    async def work() -> Backup:
        return await back_up(Home(find_home(os.environ)), os.environ, file)

    made = run_async(work)
    if as_json:
        print_json(_backup_body(made))
    else:
        say("The home is copied.")
        fields(
            {
                "file": made.file,
                "size": f"{made.size:,} bytes",
                "sha256": made.sha256,
                "up to": f"record {made.manifest.seq} of {made.manifest.node}",
                "members": len(made.manifest.members),
            }
        )
    for reason in made.left_out[:_MOST_TOLD]:
        note(f"not copied as it is: {clean(reason)}")
    if len(made.left_out) > _MOST_TOLD:
        note(f"not copied as it is: {len(made.left_out) - _MOST_TOLD} more, see --json")
    note("Whoever has this file has the node's keys: keep it as you keep the home.")


def _backup_body(made: Backup) -> dict[str, Any]:
    return {
        "file": made.file,
        "size": made.size,
        "sha256": made.sha256,
        "node": made.manifest.node,
        "head": made.manifest.seq,
        "members": len(made.manifest.members),
        "left_out": [os.fsencode(reason).decode(errors="replace") for reason in made.left_out],
    }


def restore_home(file: File, /, *, as_json: Json = False) -> None:
    """Put the home back as a backup has it; nothing may use the home meanwhile.

    What is in the home now is moved aside as it is, never deleted.

    Args:
        file: A file that `openfang backup` made.
    """
    _refuse_stream(file, "a backup is read from a file")
    signal.signal(signal.SIGTERM, _end)
    done = restore(Path(file), find_home(os.environ), time.time_ns())
    if as_json:
        print_json(_restored_body(done))
    else:
        say("The home is restored.")
        fields(
            {
                "home": done.home,
                "made": f"{done.manifest.created_at}, by version {done.manifest.version}",
                "up to": f"record {done.manifest.seq} of {done.manifest.node}",
                "on record": done.record,
                "old home": done.aside or "there was none",
            }
        )
    _tell_what_it_means(done)


def _end(number: int, _: object) -> NoReturn:
    """Leave by way of whoever has to tidy up."""
    sys.exit(128 + number)


def _restored_body(done: Restored) -> dict[str, Any]:
    return {
        "home": done.home,
        "node": done.manifest.node,
        "head": done.manifest.seq,
        "made_at": done.manifest.created_at,
        "record": done.record,
        "aside": done.aside,
    }


def _tell_what_it_means(done: Restored) -> None:
    note(
        f"What was done after record {done.manifest.seq} is not in it: a key that was revoked "
        "since opens again. Where audit.checkpoint_file lies outside the home and knows of later "
        "records, openfang audit verify says that the tail was cut, and that is true."
    )
    if "master.key" not in done.manifest.members:
        note("The backup has no master.key: the node's keys depend on the system's keyring.")


def _refuse_stream(file: str, reason: str) -> None:
    if file == STDIN:
        raise Usage(f"`-` is no file: {reason}.", way_out="openfang backup FILE")
