"""How a new home is made."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from openfang.app.home.first_key import DEFAULT_PROJECT, first_key, is_in_force, keep
from openfang.app.home.naming import new_name
from openfang.app.home.paths import Home
from openfang.audit.chain import digest
from openfang.audit.notary import Notary, statement
from openfang.config.load import load
from openfang.core.errors import HomeError
from openfang.host.private import write_private
from openfang.host.secrets import MasterKey
from openfang.storage.database import at_once, open_home
from openfang.storage.keys import KeyStore
from openfang.storage.specs import insert_project
from openfang.storage.state import Settings, put_setting
from openfang.storage.units import Unit
from openfang.storage.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from openfang.config.models import Config

_FIRST_CONFIG = """\
# OpenFang. Every key with its default: openfang config schema
# What is written here is strict: an unknown key or a wrong type stops the start.

[policy]
profile = "guided"  # "seed": the six gates as they stand
"""


class Made(IntEnum):
    """What `init_home` had to do; false if nothing."""

    NOTHING = 0
    HOME = 1
    KEY = 2


def init_home(path: Path, environ: Mapping[str, str]) -> tuple[Home, Made]:
    """Make a home, finish one that is half made, or replace a key file that opens nothing."""
    home = Home(path)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        with _one_at_a_time(path):
            if not home.config_file.exists():
                write_private(home.config_file, _FIRST_CONFIG)
            made = _found(home, load(path, environ))
    except OSError as error:
        raise HomeError(
            f"The home {path} cannot be made: {error.strerror}.",
            way_out="set OPENFANG_HOME to a folder that you may write to",
        ) from error
    return home, made


@contextmanager
def _one_at_a_time(path: Path) -> Generator[None]:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _found(home: Home, config: Config) -> Made:
    """Give the home its node, its first project and its first key, each only once."""
    if config.storage.file(home.path) is None:
        return _on_server(home, config)
    database = open_home(home.database(config))
    try:
        node = at_once(Settings(database).get("node"))
        if node is None:
            node = new_name()
            _write_agents(home)
            database.connection.execute(*put_setting("node", node))
        else:
            require_master_key(home, config)
        database.connection.execute(*insert_project(DEFAULT_PROJECT))
        master = MasterKey.open(home.path, keyring=config.secrets.keyring)
        checkpoints = Path(config.audit.checkpoint_file)
        notary = Notary(node=node, key=master.signing_key(), file=checkpoints)
        keys = KeyStore(database, master.derive("api-keys"))
        return _key_file(home, database.path, keys, notary)
    finally:
        database.close()


def _on_server(home: Home, config: Config) -> Made:
    from openfang.app.home.founding import found_on_server  # noqa: PLC0415 - most homes are a file

    before = home.key_file.exists()
    made = found_on_server(home, config)
    _write_agents(home)
    return (Made.KEY if before else Made.HOME) if made else Made.NOTHING


def _write_agents(home: Home) -> None:
    from openfang.app.agents.starters import write_starters  # noqa: PLC0415 - only a new home needs it

    write_starters(home.path)


def _key_file(home: Home, file: Path, keys: KeyStore, notary: Notary) -> Made:
    """See to it that the key file holds a key that is in force; one that does not is kept."""
    made = Made.KEY if home.key_file.exists() else Made.HOME
    if at_once(is_in_force(home, keys)):
        return Made.NOTHING
    _write_first_key(home, file, keys, notary)
    return made


def require_master_key(home: Home, config: Config) -> None:
    """Refuse to go on without the key that everything was derived from."""
    if not config.secrets.keyring and not home.master_key.exists():
        raise HomeError(
            f"{home.master_key} is missing: keys, secrets and checkpoints depend on it.",
            way_out="restore it from a backup of the home",
        )


def _write_first_key(home: Home, file: Path, keys: KeyStore, notary: Notary) -> None:
    """Make an administrator's key, and sign the log that it begins."""
    made = at_once(first_key(keys))
    writer = Writer(path=file, node=notary.node, digest=digest)
    try:
        writer.write_blocking(made.unit)
        point = notary.sign(writer.head, made.created_at)
        writer.write_blocking(Unit(statements=(statement(point),)))
    finally:
        writer.close()
    keep(home, made)
