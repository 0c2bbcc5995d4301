"""`openfang config check|show|schema|path`."""

from __future__ import annotations

import os

from openfang.cli.errors import ERROR
from openfang.cli.options import Json
from openfang.cli.output import clean, note, print_json, say
from openfang.config.home import find_home
from openfang.config.load import FILE, check, load
from openfang.config.schema import json_schema
from openfang.config.show import as_dict, as_toml


def check_config(*, as_json: Json = False) -> int:
    """Find all that is wrong with the configuration; exits with 1 if there is anything."""
    home = find_home(os.environ)
    problems = check(home, os.environ)
    if as_json:
        print_json(
            [
                {
                    "file": problem.place.file,
                    "line": problem.place.line,
                    "key": problem.key,
                    "message": problem.message,
                }
                for problem in problems
            ]
        )
    for problem in () if as_json else problems:
        say(clean(str(problem)))
    if not problems and not as_json:
        exists = (home / FILE).exists()
        note(f"{home / FILE}: {'no problems' if exists else 'not there, so the defaults hold'}")
    return ERROR if problems else 0


def show_config(*, as_json: Json = False) -> None:
    """Show the configuration in force, without its secrets."""
    config = load(find_home(os.environ), os.environ)
    if as_json:
        print_json(as_dict(config))
    else:
        say(clean(as_toml(config)).rstrip("\n"))


def schema() -> None:
    """Print the JSON Schema of the configuration: every key, its type, default and meaning."""
    print_json(json_schema())


def path() -> None:
    """Print where the configuration lies."""
    say(str(find_home(os.environ) / FILE))
